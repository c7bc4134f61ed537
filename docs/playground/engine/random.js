// Randomness as a pure function of (seed, step, stream, factor, sample, slot): Philox4x32-10.
// The twin of src/vitrail/random.py, with the same bits.

import { logit, roundHalfEven, sigmoid } from "./numerics.js";

export const Stream = { PRIOR: 0, CONFIGURATION: 2, SURVEY: 3, DECODE: 5, CAVITY: 8 };

const ROUNDS = 10;
const THRESHOLD_ONE = 65536; // a 16-bit lane is always below it: probability exactly one

// The upper half of a 32×32-bit product, from 16-bit halves: doubles hold 53 bits, not 64.
function multiplyHigh(a, b) {
  const a0 = a & 0xffff;
  const a1 = a >>> 16;
  const b0 = b & 0xffff;
  const b1 = b >>> 16;
  const middle = a1 * b0 + ((a0 * b0) >>> 16);
  const carried = a0 * b1 + (middle & 0xffff);
  return a1 * b1 + (middle >>> 16) + (carried >>> 16);
}

// Philox of the counter (c0, c1, c2, c3) under the key (k0, k1): four words into `out`.
export function philox(c0, c1, c2, c3, k0, k1, out) {
  for (let round = 0; round < ROUNDS; round++) {
    const high0 = multiplyHigh(c0, 0xd2511f53);
    const low0 = Math.imul(c0, 0xd2511f53);
    const high1 = multiplyHigh(c2, 0xcd9e8d57);
    const low1 = Math.imul(c2, 0xcd9e8d57);
    c0 = (high1 ^ c1 ^ k0) >>> 0;
    c1 = low1 >>> 0;
    c2 = (high0 ^ c3 ^ k1) >>> 0;
    c3 = low0 >>> 0;
    k0 = (k0 + 0x9e3779b9) >>> 0;
    k1 = (k1 + 0xbb67ae85) >>> 0;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

const words = new Uint32Array(4);

// Draws of one seed at one step.
export class Key {
  constructor(seed, step = 0) {
    this.seed = seed;
    this.step = step;
  }

  at(step) {
    return new Key(this.seed, step);
  }

  call(stream, factor, sample, block) {
    const high = Math.floor(this.seed / 2 ** 32);
    const word = ((stream << 24) | high) >>> 0;
    philox(block, sample, factor, this.step, this.seed >>> 0, word, words);
  }

  // 16-bit lanes for slots 0…out.length−1, eight a call
  lanes16(stream, factor, sample, out) {
    for (let slot = 0; slot < out.length; slot++) {
      const lane = slot & 7;
      if (lane === 0) this.call(stream, factor, sample, slot >> 3);
      const word = words[lane >> 1];
      out[slot] = lane & 1 ? word >>> 16 : word & 0xffff;
    }
    return out;
  }

  // 32-bit lanes, four a call
  lanes32(stream, factor, sample, out) {
    for (let slot = 0; slot < out.length; slot++) {
      if ((slot & 3) === 0) this.call(stream, factor, sample, slot >> 2);
      out[slot] = words[slot & 3];
    }
    return out;
  }

  // Standard normal draws by Box-Muller from pairs of 32-bit lanes
  normal(count) {
    const lanes = this.lanes32(Stream.PRIOR, 0, 0, new Float64Array(2 * count));
    return Float64Array.from({ length: count }, (_, i) => {
      const [radial, angular] = [lanes[2 * i], lanes[2 * i + 1]].map((u) => (u + 0.5) / 2 ** 32);
      return Math.sqrt(-2 * Math.log(radial)) * Math.cos(2 * Math.PI * angular);
    });
  }
}

// Where the threshold steps from k − 1 to k, rounded to 2⁻⁴⁰; the ends are ∓infinity.
export const thresholdEdges = (() => {
  const edges = new Float64Array(THRESHOLD_ONE + 2);
  for (let k = 1; k <= THRESHOLD_ONE; k++) {
    edges[k] = roundHalfEven(logit((k - 0.5) / THRESHOLD_ONE) * 2 ** 40) / 2 ** 40;
  }
  edges[0] = -Infinity;
  edges[THRESHOLD_ONE + 1] = Infinity;
  return edges;
})();

// P(1) of finite log-odds in 65536ths. The sigmoid only guesses; comparisons with the edges settle.
export function threshold(logOdds) {
  const guess = roundHalfEven(sigmoid(logOdds) * THRESHOLD_ONE);
  return (
    guess + (logOdds >= thresholdEdges[guess + 1] ? 1 : 0) - (logOdds < thresholdEdges[guess] ? 1 : 0)
  );
}
