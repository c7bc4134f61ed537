// The digit half of the page: draw, see the bits, watch the networks vote.

import { glassColour } from "../svg.js";
import { Committee, unpacked } from "./committee.js";
import { SIDE, bitsOf } from "./ink.js";
import { model } from "./networks.js";

const byId = (id) => document.getElementById(id);
const committee = new Committee(model);
const pad = byId("pad");
const window14 = byId("bits");

let strokes = [];
let bits = new Uint8Array(SIDE * SIDE);
let cursor = SIDE * 7 + 7;

const hue = (digit, lightness = 0.6) => `oklch(${lightness} 0.16 ${(25 + 36 * digit) % 360})`;
const UNDER_WHITE = 0.52; // white digits have a contrast of 4.5 on every hue

// Drawing

function penAt(event) {
  const box = pad.getBoundingClientRect();
  return [((event.clientX - box.left) / box.width) * 280, ((event.clientY - box.top) / box.height) * 280];
}

function drawPad() {
  byId("pad-hint").hidden = strokes.length > 0;
  const context = pad.getContext("2d");
  context.clearRect(0, 0, 280, 280);
  const colour = getComputedStyle(pad).color;
  Object.assign(context, { lineWidth: 20, lineCap: "round", lineJoin: "round", strokeStyle: colour });
  for (const stroke of strokes) {
    context.beginPath();
    context.moveTo(...stroke[0]);
    for (const point of stroke.length > 1 ? stroke.slice(1) : stroke) context.lineTo(...point);
    context.stroke();
  }
}

pad.addEventListener("pointerdown", (event) => {
  pad.setPointerCapture(event.pointerId);
  strokes.push([penAt(event)]);
  inked();
});
pad.addEventListener("pointermove", (event) => {
  if (!pad.hasPointerCapture(event.pointerId)) return;
  for (const part of event.getCoalescedEvents?.() ?? [event]) strokes.at(-1).push(penAt(part));
  inked();
});

function inked() {
  drawPad();
  show(bitsOf(strokes));
}

// The 14×14 bits, which can be set one by one too

function toggle(at) {
  const changed = bits.slice();
  changed[at] ^= 1;
  strokes = [];
  drawPad();
  show(changed);
}

window14.addEventListener("click", (event) => {
  const box = window14.getBoundingClientRect();
  const place = (share) => Math.min(SIDE - 1, Math.max(0, Math.floor(share * SIDE)));
  cursor = place((event.clientY - box.top) / box.height) * SIDE + place((event.clientX - box.left) / box.width);
  toggle(cursor);
});
window14.addEventListener("keydown", (event) => {
  const [row, column] = [Math.floor(cursor / SIDE), cursor % SIDE];
  const moves = {
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
  };
  if (event.key in moves) {
    const [y, x] = moves[event.key].map((place) => (place + SIDE) % SIDE);
    cursor = y * SIDE + x;
    drawBits();
  } else if (event.key === " " || event.key === "Enter") toggle(cursor);
  else return;
  event.preventDefault();
});
for (const name of ["focus", "blur"]) window14.addEventListener(name, drawBits);

function drawBits() {
  paint(window14, (at) => (bits[at] ? glassColour(0.02, at, 196, 0.1) : null));
  if (document.activeElement !== window14) return;
  const context = window14.getContext("2d");
  const cell = window14.width / SIDE;
  context.strokeStyle = getComputedStyle(window14).color;
  context.lineWidth = 3;
  context.strokeRect((cursor % SIDE) * cell + 1, Math.floor(cursor / SIDE) * cell + 1, cell - 2, cell - 2);
}

// 14×14 panes on a canvas; colour(at) is null where a pane is dark
function paint(canvas, colour) {
  const context = canvas.getContext("2d");
  const cell = canvas.width / SIDE;
  const dark = getComputedStyle(canvas).getPropertyValue("--pane");
  context.clearRect(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < SIDE * SIDE; at++) {
    context.fillStyle = colour(at) ?? dark;
    context.fillRect((at % SIDE) * cell + 1, Math.floor(at / SIDE) * cell + 1, cell - 2, cell - 2);
  }
}

// The vote

const panes = Array.from({ length: committee.networks }, () => document.createElement("span"));
byId("votes").append(...panes);
const bars = Array.from({ length: committee.classes }, (_, digit) => {
  const row = document.createElement("div");
  row.className = "bar";
  row.innerHTML = `<span class="digit">${digit}</span><span class="track"><span class="fill"></span></span><span class="share"></span>`;
  row.querySelector(".fill").style.background = hue(digit);
  return row;
});
byId("bars").append(...bars);

function show(next) {
  bits = next;
  drawBits();
  const blank = !bits.some(Boolean);
  byId("digits").classList.toggle("blank", blank);
  const { label, votes, answers } = committee.predict(bits);
  panes.forEach((pane, network) => {
    pane.textContent = blank ? "" : String(answers[network]);
    pane.style.background = blank ? "" : hue(answers[network], UNDER_WHITE);
  });
  bars.forEach((bar, digit) => {
    const count = blank ? 0 : votes[digit];
    bar.classList.toggle("first", !blank && digit === label);
    bar.querySelector(".fill").style.width = `${(100 * count) / committee.networks}%`;
    bar.querySelector(".share").textContent = blank ? "" : String(count);
  });
  byId("answer").textContent = blank ? "?" : String(label);
  byId("answer").style.color = blank ? "" : hue(label);
  byId("sure").textContent = blank ? "Draw a digit, or take one." : sentence(label, votes);
  showPair(blank ? null : label, votes);
}

function sentence(label, votes) {
  const agree = votes[label];
  const { low, high, digits, right } = model.reliability.find((bin) => agree >= bin.low && agree <= bin.high);
  const range = low === high ? `all ${low}` : `${low} to ${high}`;
  const share = ((100 * right) / digits).toFixed(digits < 1000 ? 0 : 1);
  return (
    `${agree} of ${committee.networks} networks say ${label}. Of the ${digits.toLocaleString("en")} test digits ` +
    `on which ${range} agreed, ${share}% were right.`
  );
}

// The weights that decide between the answer and the next likeliest
function showPair(label, votes) {
  byId("pair").hidden = label === null;
  if (label === null) return;
  const others = Array.from(votes, (count, digit) => [digit === label ? -1 : count, digit]);
  const next = others.sort(([a], [b]) => b - a)[0][1];
  const [low, high] = [Math.min(label, next), Math.max(label, next)];
  const weights = committee.weights(low, high);
  paint(byId("pair-weights"), (at) => glassColour(weights[at], 4, 10));
  const context = byId("pair-weights").getContext("2d");
  const cell = byId("pair-weights").width / SIDE;
  context.fillStyle = "#fff";
  for (let at = 0; at < SIDE * SIDE; at++) {
    if (!bits[at]) continue;
    context.beginPath();
    context.arc(((at % SIDE) + 0.5) * cell, (Math.floor(at / SIDE) + 0.5) * cell, cell / 6, 0, 7);
    context.fill();
  }
  byId("pair-low").textContent = String(low);
  byId("pair-high").textContent = String(high);
}

// Digits of the test set, in turn
const given = (list) => {
  let next = 0;
  return () => {
    const words = unpacked(list[next % list.length], 1, SIDE * SIDE, 7);
    next += 1;
    strokes = [];
    drawPad();
    show(Uint8Array.from({ length: SIDE * SIDE }, (_, i) => (words[i >> 5] >>> (i & 31)) & 1));
  };
};
const easy = given(model.samples.sure);
byId("sample").addEventListener("click", easy);
byId("hard").addEventListener("click", given(model.samples.unsure));
byId("clear").addEventListener("click", () => {
  strokes = [];
  drawPad();
  show(new Uint8Array(SIDE * SIDE));
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  drawPad();
  show(bits);
});

byId("facts").textContent =
  `${committee.networks} networks of ${(committee.pairs.length * committee.size).toLocaleString("en")} bits each, ` +
  `drawn from the posterior after ${model.record.rows.toLocaleString("en")} images; ` +
  `${(100 * model.record.accuracy).toFixed(1)}% right on the 10,000 test digits.`;
easy();
