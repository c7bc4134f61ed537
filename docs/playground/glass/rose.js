// The factor graph as a rose window. Each example is a pane; each of its pieces is the message to
// one weight. The weights are medallions around the centre, filled to P(w = +1).

import { element, glassColour, jitter, noiseTile } from "../svg.js";

const FRAME = 492; // radii, in units of a thousandth of the window's width
const TIP = 466;
const SHOULDER = 414;
const BASE = 262;
const MEDALLIONS = 176;
const JITTER = 0.3; // of a piece's size, by which lead lines leave the regular

const still = window.matchMedia("(prefers-reduced-motion: reduce)");

const polar = (radius, angle) => [radius * Math.sin(angle), -radius * Math.cos(angle)];
const point = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;

export class Rose {
  // onSelect(i) is called when a weight is chosen
  constructor(svg, onSelect) {
    this.svg = svg;
    this.onSelect = onSelect;
    this.noise = noiseTile();
  }

  // Draw the lead for so many panes and weights; `show` then colours it.
  build(panes, weights) {
    Object.assign(this, { panes, weights, selected: Math.min(this.selected ?? 2, weights - 1) });
    this.pieces = [];
    this.paneGroups = [];
    for (let pane = 0; pane < panes; pane++) {
      const place = (u, v) => placed(pane, panes, u, v);
      const pieces = paneSlots(pane, panes, weights).map((corners) =>
        element("path", { d: outline(corners, place), class: "piece" }),
      );
      this.pieces.push(pieces);
      const whole = outline([[-1, 0], [1, 0], [1, 1], [-1, 1]], place);
      const title = element("title");
      const shade = element("path", { d: whole, class: "shade" });
      this.paneGroups.push(element("g", { class: "pane" }, [title, ...pieces, shade]));
    }
    this.rays = Array.from({ length: panes }, () => element("line", { class: "ray" }));
    this.sparks = Array.from({ length: panes }, () => element("line", { class: "spark", pathLength: 100 }));
    this.medallions = Array.from({ length: weights }, (_, i) => this.medallion(i));
    this.centre = [
      element("text", { class: "count", y: 6 }),
      element("text", { class: "of", y: 38 }),
      element("text", { class: "of best", y: 64 }),
    ];
    this.wheel = element("g", { role: "radiogroup", "aria-label": "weights" }, this.medallions.map((m) => m.group));
    this.svg.replaceChildren(
      this.definitions(),
      element("circle", { r: FRAME, class: "stone" }),
      element("circle", { r: TIP + 8, class: "ground" }),
      ...this.pearls(),
      element("g", {}, this.paneGroups),
      element("circle", { r: TIP + 8, class: "surface", fill: "url(#surface)" }),
      element("circle", { r: TIP + 8, class: "sheen", fill: "url(#sheen)" }),
      element("circle", { r: BASE - 5, class: "hub" }),
      element("g", {}, this.rays),
      element("g", {}, this.sparks),
      element("circle", { r: this.bossRadius, class: "boss" }),
      ...this.centre,
      this.wheel,
      element("circle", { r: FRAME - 2, class: "rim" }),
    );
    this.select(this.selected, false);
  }

  get medallionRadius() {
    return Math.min(56, MEDALLIONS * Math.sin(Math.PI / this.weights) * 0.88);
  }

  get bossRadius() {
    return Math.min(108, MEDALLIONS - this.medallionRadius - 12);
  }

  definitions() {
    const clip = element("clipPath", { id: "disc" }, [element("circle", { r: this.medallionRadius })]);
    const tile = element("image", { href: this.noise, width: 128, height: 128 });
    const surface = element("pattern", { id: "surface", width: 128, height: 128, patternUnits: "userSpaceOnUse" }, [tile]);
    const hub = gradient("hub", [[0, "var(--hub-light)"], [1, "var(--hub-dark)"]]);
    const sheen = gradient("sheen", [[0.55, "#0008"], [0.74, "#fff9"], [0.88, "#fff0"], [1, "#0009"]]);
    return element("defs", {}, [clip, surface, hub, sheen]);
  }

  // Small round panes where the arches leave room
  pearls() {
    const radius = Math.min(17, (TIP * Math.PI) / this.panes / 2.6);
    return Array.from({ length: this.panes }, (_, pane) => {
      const [cx, cy] = polar(TIP + 2 - radius, (2 * Math.PI * (pane + 0.5)) / this.panes);
      return element("circle", { cx, cy, r: radius, class: "pearl" });
    });
  }

  medallion(i) {
    const radius = this.medallionRadius;
    const [x, y] = polar(MEDALLIONS, (2 * Math.PI * i) / this.weights);
    const box = { x: -radius, width: 2 * radius };
    const parts = {
      zero: element("rect", { ...box, y: -radius, height: 2 * radius }),
      one: element("rect", { ...box, y: -radius, height: 2 * radius, class: "level" }),
      survey: element("path", { class: "survey" }),
      title: element("title"),
    };
    const inside = element("g", { "clip-path": "url(#disc)" }, [parts.zero, parts.one, parts.survey]);
    const ring = element("circle", { r: radius, class: "ring" });
    const number = element("text", { class: "number", y: 7 });
    number.textContent = String(i);
    parts.group = element(
      "g",
      { class: "medallion", role: "radio", transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
      [parts.title, inside, ring, number],
    );
    parts.group.addEventListener("click", () => this.select(i));
    parts.group.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!move) return;
      event.preventDefault();
      this.select((i + move + this.weights) % this.weights);
    });
    return parts;
  }

  select(i, tell = true) {
    this.selected = i;
    this.medallions.forEach(({ group }, number) => {
      group.setAttribute("aria-checked", String(number === i));
      group.setAttribute("tabindex", number === i ? "0" : "-1");
      group.classList.toggle("selected", number === i);
    });
    if (this.shown) this.show(this.shown);
    if (tell) {
      this.medallions[i].group.focus();
      this.onSelect(i);
    }
  }

  // probabilities (A): P(w = 1); messages (F·A): P as each pane says it; satisfied (F); surveys (A) of
  // bins, or null; titles (F); counts {now, all, best}
  show(shown) {
    this.shown = shown;
    const { probabilities, messages, satisfied, surveys, titles, counts } = shown;
    const { weights, selected } = this;
    for (let pane = 0; pane < this.panes; pane++) {
      this.pieces[pane].forEach((piece, i) => {
        const shade = 0.1 * (jitter(pane, i) - 0.5);
        piece.style.fill = glassColour(messages[pane * weights + i], i, weights, shade);
      });
      this.paneGroups[pane].classList.toggle("dark", !satisfied[pane]);
      this.paneGroups[pane].firstChild.textContent = titles[pane];
      this.ray(pane, messages[pane * weights + selected]);
    }
    this.medallions.forEach((parts, i) => this.fill(parts, i, probabilities[i], surveys?.[i]));
    this.centre[0].textContent = String(counts.now);
    this.centre[1].textContent = `of ${counts.all} lit`;
    this.centre[2].textContent = `best ${counts.best}`;
  }

  ray(pane, chance) {
    const [x1, y1] = polar(BASE - 4, (2 * Math.PI * pane) / this.panes);
    const [x2, y2] = polar(MEDALLIONS, (2 * Math.PI * this.selected) / this.weights);
    const ray = this.rays[pane];
    for (const [name, value] of Object.entries({ x1, y1, x2, y2 })) {
      ray.setAttribute(name, value.toFixed(1));
      this.sparks[pane].setAttribute(name, value.toFixed(1));
    }
    ray.style.stroke = glassColour(chance, this.selected, this.weights, 0.08);
    const strength = 2 * Math.abs(chance - 0.5);
    ray.style.strokeWidth = 1.5 + 5 * strength;
    ray.style.opacity = 0.22 + 0.7 * strength;
    this.sparks[pane].style.strokeWidth = 1 + 4 * strength;
  }

  fill(parts, i, chance, survey) {
    const radius = this.medallionRadius;
    parts.zero.style.fill = glassColour(Math.min(0.12, chance), i, this.weights);
    parts.one.style.fill = glassColour(Math.max(0.88, chance), i, this.weights);
    parts.one.style.transform = `translateY(${(2 * radius * (1 - chance)).toFixed(1)}px)`;
    parts.survey.setAttribute("d", survey ? bars(survey, radius) : "");
    const label = `weight ${i}: P(+1) = ${chance.toFixed(3)}`;
    parts.title.textContent = label;
    parts.group.setAttribute("aria-label", label);
  }

  // Light runs along the rays, once
  pulse() {
    for (const spark of this.sparks) {
      for (const animation of spark.getAnimations()) animation.cancel();
      if (!still.matches) spark.animate([{ strokeDashoffset: 12, opacity: 1 }, { strokeDashoffset: -90, opacity: 0.2 }], 450);
    }
  }
}

function gradient(id, stops) {
  const made = stops.map(([offset, colour]) => element("stop", { offset, "stop-color": colour }));
  return element("radialGradient", { id }, made);
}

// From across (u, −1…1) and along (v, 0…1) a pane to the window
function placed(pane, panes, u, v) {
  const half = Math.PI / panes;
  const arch = SHOULDER + (TIP - SHOULDER) * (1 - Math.abs(u) ** 1.5);
  const radius = BASE + (arch - BASE) * v;
  return polar(radius, 2 * half * pane + u * (half - 3 / radius));
}

// Pieces of a pane in (u, v): rows of nearly square pieces, their corners a little off the grid
function paneSlots(pane, panes, weights) {
  const width = (2 * Math.PI * (BASE + TIP)) / 2 / panes;
  const columns = Math.max(1, Math.min(weights, Math.round(Math.sqrt((weights * width) / (TIP - BASE)))));
  const rows = Math.ceil(weights / columns);
  const sizes = Array.from({ length: rows }, (_, row) => {
    const base = Math.floor(weights / rows);
    return base + (row < weights - base * rows ? 1 : 0);
  });
  const height = (row) => {
    const off = row === 0 || row === rows ? 0 : JITTER * (jitter(pane, row) - 0.5);
    return (row + off) / rows;
  };
  const slots = [];
  sizes.forEach((size, row) => {
    // where a lead line meets the row's lower and upper edge
    const across = (column, edge) => {
      const off = column === 0 || column === size ? 0 : JITTER * (jitter(pane, row, column, edge) - 0.5);
      return (2 * (column + off)) / size - 1;
    };
    const [low, high] = [height(row), height(row + 1)];
    for (let column = 0; column < size; column++) {
      slots.push([
        [across(column, 0), low],
        [across(column + 1, 0), low],
        [across(column + 1, 1), high],
        [across(column, 1), high],
      ]);
    }
  });
  return slots;
}

// The outline of a piece, its edges bent as the pane is
function outline(corners, place) {
  const points = corners.flatMap(([u, v], at) => {
    const [toU, toV] = corners[(at + 1) % corners.length];
    const parts = Math.max(2, Math.ceil(8 * Math.abs(toU - u)));
    return Array.from({ length: parts }, (_, k) => {
      const share = k / parts;
      return point(place(u + (toU - u) * share, v + (toV - v) * share));
    });
  });
  return `M${points.join("L")}Z`;
}

// A survey as bars at the height of their bins
function bars(survey, radius) {
  const most = Math.max(...survey);
  const step = (2 * radius) / survey.length;
  return [...survey]
    .map((mass, k) => {
      if (mass < 0.002) return "";
      const half = (0.9 * radius * Math.sqrt(mass / most)).toFixed(1);
      const y = radius - (k + 0.5) * step;
      return `M${-half} ${(y - step * 0.4).toFixed(1)}H${half}V${(y + step * 0.4).toFixed(1)}H${-half}Z`;
    })
    .join("");
}
