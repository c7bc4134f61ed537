// The message-passing half of the page: controls, two runs side by side, and what is drawn of them.

import {
  Perceptrons,
  Run,
  beliefPropagation,
  glass,
  histogramOf,
  sigmoid,
  stainedGlass,
  surveyPropagation,
} from "../engine/index.js";
import { drawCounts, drawHops } from "./charts.js";
import { Rose } from "./rose.js";
import { SETTINGS, asPython, fromHash, spelled, toHash, wholeNumber } from "./settings.js";

const SOLVERS = { bp: beliefPropagation, s4p: surveyPropagation };
const TICK = 180; // milliseconds between two steps
const MOST_STEPS = 200; // after which playing ends by itself

const byId = (id) => document.getElementById(id);
const symbol = (value) => (value === Infinity ? "∞" : String(value));

let settings = fromHash(location.hash);
let graph, optimum, runs, histories, timer, altered;

const rose = new Rose(byId("rose"), () => {
  drawCharts();
  describe();
});

function reset() {
  pause();
  const make = settings.data === "glass" ? glass : stainedGlass;
  graph = new Perceptrons(make(settings.examples, settings.weights, settings.seed));
  optimum = graph.optimum();
  runs = Object.fromEntries(Object.entries(SOLVERS).map(([name, solver]) => [name, new Run(solver, graph, settings)]));
  histories = { bp: [], s4p: [] };
  altered = false;
  if (rose.panes !== graph.numFactors || rose.weights !== graph.arity) {
    rose.shown = null;
    rose.build(graph.numFactors, graph.arity);
  }
  draw();
}

function step() {
  for (const [name, run] of Object.entries(runs)) {
    run.settings = settings;
    run.step();
    histories[name].push({ now: run.count, best: run.bestCount, surveys: surveysOf(run) });
  }
  draw();
  rose.pulse();
}

const steps = () => histories.bp.length;
const surveysOf = (run) =>
  Array.from({ length: graph.arity }, (_, i) => histogramOf(run.solver.survey(graph, run.state, i)));

function play() {
  if (timer) return pause();
  byId("play").textContent = "Pause";
  byId("status").setAttribute("aria-live", "off"); // a line a step would drown everything else
  const arrived = () => Object.values(runs).every((run) => run.count === optimum);
  const before = arrived(); // asked to play on from there
  const end = steps() + MOST_STEPS;
  const tick = () => {
    const begun = performance.now();
    step();
    if (steps() >= end || (arrived() && !before)) return pause();
    timer = setTimeout(tick, Math.max(20, TICK - (performance.now() - begun)));
  };
  timer = setTimeout(tick, 0);
}

function pause() {
  clearTimeout(timer);
  timer = null;
  byId("play").textContent = "Play";
  byId("status").setAttribute("aria-live", "polite");
  if (runs) describe();
}

function draw() {
  const run = runs[settings.solver];
  const satisfied = graph.satisfied(run.decoded);
  const history = histories[settings.solver];
  rose.show({
    probabilities: Array.from(run.logOdds, sigmoid),
    messages: Array.from(run.solver.messages(graph, run.state), sigmoid),
    satisfied,
    surveys: settings.solver === "s4p" && history.length ? history.at(-1).surveys : null,
    titles: satisfied.map(paneTitle),
    counts: { now: run.count, all: graph.numFactors, best: run.bestCount },
  });
  byId("glow").style.opacity = String((run.count / graph.numFactors) ** 3);
  drawCharts();
  describe();
}

function paneTitle(lit, pane) {
  const row = graph.inputs.subarray(pane * graph.arity, (pane + 1) * graph.arity);
  const signs = Array.from(row, (x) => (x > 0 ? "+" : "−")).join("");
  return `example ${pane}: inputs ${signs}, label ${graph.labels[pane]}, ${lit ? "satisfied" : "not satisfied"}`;
}

function drawCharts() {
  for (const name of Object.keys(SOLVERS)) {
    drawHops(byId(`hops-${name}`), histories[name].map(({ surveys }) => surveys[rose.selected]));
  }
  const lines = Object.entries(histories).map(([name, history]) => ({
    colour: `--${name}`,
    now: history.map(({ now }) => now),
    best: history.map(({ best }) => best),
  }));
  drawCounts(byId("counts"), lines, graph.numFactors, optimum);
}

function describe() {
  for (const place of document.querySelectorAll(".watched")) place.textContent = String(rose.selected);
  byId("tracks").textContent = settings.surveySamples === 1 ? "1 track" : `${settings.surveySamples} tracks`;
  const { bp, s4p } = runs;
  const all = graph.numFactors;
  const first = steps() === 0 ? "Nothing has been said yet." : `Step ${steps()}.`;
  const effective = s4p.info ? ` Of ${settings.surveySamples} tracks ${s4p.info.effective.toFixed(1)} carry the weight.` : "";
  byId("status").textContent =
    `${first} Belief propagation lights ${bp.count} of ${all} panes (best ${bp.bestCount}), ` +
    `surveys ${s4p.count} (best ${s4p.bestCount}). ` +
    `No choice of ${graph.arity} bits lights more than ${optimum}.${effective}`;
  byId("python").textContent =
    (altered ? "# settings were changed on the way: press Reset for a run that Python repeats\n" : "") +
    asPython(settings, steps());
}

// Controls

function change(name, value) {
  if (settings[name] === value) return;
  settings = { ...settings, [name]: value };
  history.replaceState(null, "", `#${toHash(settings)}`);
  showControls();
  if (SETTINGS[name].live) {
    altered = altered || steps() > 0;
    if (steps() === 0) reset();
    else describe();
  } else if (name === "solver") draw();
  else reset();
}

function showControls() {
  for (const [name, { values }] of Object.entries(SETTINGS)) {
    if (name === "seed") byId("seed").value = String(settings.seed);
    else if (name === "solver" || name === "data") {
      document.querySelector(`input[name=${name}][value=${settings[name]}]`).checked = true;
    } else {
      byId(name).value = String(values.indexOf(settings[name]));
      byId(name).setAttribute("aria-valuetext", spelled(settings[name]));
      byId(`${name}-value`).textContent = symbol(settings[name]);
    }
  }
}

function listen() {
  for (const [name, { values }] of Object.entries(SETTINGS)) {
    if (name === "seed") continue;
    if (name === "solver" || name === "data") {
      for (const input of document.querySelectorAll(`input[name=${name}]`)) {
        input.addEventListener("change", () => change(name, input.value));
      }
      continue;
    }
    Object.assign(byId(name), { min: 0, max: values.length - 1, step: 1 });
    byId(name).addEventListener("input", () => change(name, values[Number(byId(name).value)]));
  }
  byId("seed").addEventListener("change", () => {
    change("seed", wholeNumber(byId("seed").value, settings.seed));
    showControls();
  });
  byId("play").addEventListener("click", play);
  byId("step").addEventListener("click", () => {
    pause();
    step();
  });
  byId("reset").addEventListener("click", reset);
  byId("another").addEventListener("click", () => change("seed", (settings.seed + 1) % 2 ** 32));
  byId("message-passing").addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, textarea")) return;
    const act = { p: () => byId("play").click(), s: () => byId("step").click(), r: () => byId("reset").click() }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  window.addEventListener("resize", drawCharts);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCharts);
  window.addEventListener("hashchange", () => {
    if (!location.hash.includes("=")) return; // a jump to a heading
    settings = fromHash(location.hash);
    showControls();
    reset();
  });
}

listen();
showControls();
reset();
if (!window.matchMedia("(prefers-reduced-motion: reduce)").matches) play();

// For the console, and for the tests that compare these numbers with Python's
globalThis.playground = {
  get runs() {
    return runs;
  },
};
