// Linear threshold factors, one per example: satisfied when [Σ_i x_i·w_i > 0] is the label.
// The twin of src/vitrail/factors/perceptron.py for weights that are read as −1 and +1.

import { Stream } from "./random.js";

const MAX_TRIED = 16; // weights whose configurations are all tried

export class Perceptrons {
  // data: {examples, weights, inputs (F·A) of ±1, labels (F) of 0/1}
  constructor(data) {
    this.numFactors = data.examples;
    this.arity = data.weights;
    this.inputs = data.inputs;
    this.labels = data.labels;
    this.lanes = new Uint16Array(this.arity);
    this.bits = new Uint8Array(this.arity);
  }

  // Draw `samples` configurations of one factor, P(w_i = 1) = thresholds[i]/65536, and count how
  // many are satisfied with each weight set to 1 and to 0: added to one and zero from `at` on.
  hits(key, factor, firstSample, samples, thresholds, one, zero, at) {
    const { arity, inputs, lanes, bits } = this;
    const row = factor * arity;
    const positive = this.labels[factor] === 1;
    for (let sample = firstSample; sample < firstSample + samples; sample++) {
      key.lanes16(Stream.CONFIGURATION, factor, sample, lanes);
      let sum = 0;
      for (let i = 0; i < arity; i++) {
        bits[i] = lanes[i] < thresholds[i] ? 1 : 0;
        sum += bits[i] ? inputs[row + i] : -inputs[row + i];
      }
      for (let i = 0; i < arity; i++) {
        const withZero = sum - 2 * inputs[row + i] * bits[i];
        if (withZero + 2 * inputs[row + i] > 0 === positive) one[at + i]++;
        if (withZero > 0 === positive) zero[at + i]++;
      }
    }
  }

  // Which factors a configuration (A) of 0/1 satisfies
  satisfied(bits) {
    return Array.from({ length: this.numFactors }, (_, factor) => {
      let sum = 0;
      for (let i = 0; i < this.arity; i++) {
        const input = this.inputs[factor * this.arity + i];
        sum += bits[i] ? input : -input;
      }
      return sum > 0 === (this.labels[factor] === 1);
    });
  }

  count(bits) {
    return this.satisfied(bits).filter(Boolean).length;
  }

  // The most factors that any configuration satisfies, by trying all of them
  optimum() {
    if (this.arity > MAX_TRIED) throw new RangeError(`at most ${MAX_TRIED} weights can be tried`);
    const ones = Array.from({ length: this.numFactors }, (_, factor) => {
      let packed = 0;
      for (let i = 0; i < this.arity; i++) {
        if (this.inputs[factor * this.arity + i] > 0) packed |= 1 << i;
      }
      return packed;
    });
    let most = 0;
    for (let state = 0; state < 1 << this.arity; state++) {
      let right = 0;
      for (let factor = 0; factor < this.numFactors; factor++) {
        const sum = this.arity - 2 * popcount(state ^ ones[factor]);
        if (sum > 0 === (this.labels[factor] === 1)) right++;
      }
      if (right > most) most = right;
    }
    return most;
  }
}

export function popcount(word) {
  word -= (word >>> 1) & 0x55555555;
  word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
  return Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

// log p̃ of 0…samples hits under beta: log(floor + (1 − floor)·hits/samples), floor = exp(−beta)
export function logMeans(beta, samples) {
  const floor = Math.exp(-beta);
  return Float64Array.from({ length: samples + 1 }, (_, hits) =>
    Math.log(floor + (1 - floor) * (hits / samples)),
  );
}
