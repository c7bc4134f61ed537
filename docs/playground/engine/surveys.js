// Surveys as histograms over p = P(1): grid, integer masses, draws.
// The twin of src/vitrail/surveys/histogram.py with soft ends and nearest bins.

import { onLattice, roundHalfEven, sigmoid } from "./numerics.js";

export const MASS_ONE = 2 ** 20; // the integer mass of a whole survey, up to rounding
const LATTICE = 2 ** 26; // survey logs are multiples of 1/2²⁶
const SOFT_PARTS = 1000; // the end bins stand for p = 0.001 and 0.999
const SNAP = 1e-6; // p·(B−1) this close to a half is a tie

// p_k = k/(B−1), with what a bin means as a factor of a product
export class Grid {
  constructor(bins) {
    this.bins = bins;
    this.unit = (bins - 1) * SOFT_PARTS; // stands for probability one
    const least = bins - 1;
    const most = (SOFT_PARTS - 1) * (bins - 1);
    const tilts = Array.from({ length: bins }, (_, k) => Math.min(Math.max(k * SOFT_PARTS, least), most));
    this.tilt = [tilts, tilts.toReversed()];
    this.log = this.tilt.map((row) => row.map((tilt) => onLattice(Math.log(tilt / this.unit), LATTICE)));
  }

  // The bin of log-odds: nearest, half to even, after snapping what is nearly a half
  bin(logOdds) {
    const position = sigmoid(logOdds) * (this.bins - 1);
    const half = Math.floor(position) + 0.5;
    return roundHalfEven(Math.abs(position - half) < SNAP ? half : position);
  }

  // log E[p] and log E[1 − p] of integer masses from `at` on
  logMeans(mass, at) {
    let total = 0;
    const sums = [0, 0];
    for (let k = 0; k < this.bins; k++) {
      total += mass[at + k];
      sums[0] += mass[at + k] * this.tilt[0][k];
      sums[1] += mass[at + k] * this.tilt[1][k];
    }
    return sums.map((sum) => onLattice(Math.log(Math.max(sum, 1) / (total * this.unit)), LATTICE));
  }
}

// exp(logMass − largest) in units of 2⁻²⁰; zeros where all are −infinity
export function relativeMasses(logMasses, out) {
  let largest = -Infinity;
  for (let r = 0; r < logMasses.length; r++) largest = Math.max(largest, logMasses[r]);
  if (largest === -Infinity) return out.fill(0);
  for (let r = 0; r < logMasses.length; r++) {
    out[r] = roundHalfEven(Math.exp(logMasses[r] - largest) * MASS_ONE);
  }
  return out;
}

// Running sums of integer weights, from which `draw` draws
export function runningSums(weights, at, out) {
  let sum = 0;
  for (let k = 0; k < out.length; k++) out[k] = sum += weights[at + k];
  return out;
}

// The first place whose running sum exceeds lane·total/2³², in exact integers
export function draw(running, lane) {
  const total = running[running.length - 1];
  const [high, low] = [Math.floor(total / 65536), total % 65536];
  const position = Math.floor((lane * high + Math.floor((lane * low) / 65536)) / 65536);
  let [first, last] = [0, running.length - 1];
  while (first < last) {
    const middle = (first + last) >> 1;
    if (running[middle] > position) last = middle;
    else first = middle + 1;
  }
  return first;
}
