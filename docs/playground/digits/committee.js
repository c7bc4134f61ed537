// 100 networks of one-bit weights, a linear one for each pair of digits, evaluated in packed words.
//
// What the page needs of a model is `predict(row)`, row being 196 bits of a 14×14 image:
//   label    the digit that most networks answer, the lowest of equals
//   proba    (10) its probability, here the share of networks that answer each digit
//   votes    (10) how many networks answer each digit
//   answers  (K) what each network answers

import { popcount } from "../engine/graph.js";

export class Committee {
  // model: {classes, inputs, bias, networks, bits} as networks.js has it
  constructor(model) {
    this.classes = model.classes;
    this.networks = model.networks;
    this.inputs = model.inputs;
    this.pairs = [];
    for (let low = 0; low < this.classes; low++) {
      for (let high = low + 1; high < this.classes; high++) this.pairs.push([low, high]);
    }
    this.size = model.inputs + model.bias;
    this.length = Math.ceil(this.size / 32);
    this.words = unpacked(model.bits, this.networks * this.pairs.length, this.size, this.length);
  }

  predict(row) {
    const input = this.packed(row);
    const votes = new Uint32Array(this.classes);
    const answers = new Uint8Array(this.networks);
    const wins = new Uint8Array(this.classes);
    for (let network = 0; network < this.networks; network++) {
      wins.fill(0);
      this.pairs.forEach(([low, high], pair) => {
        wins[this.margin(network, pair, input) > 0 ? high : low]++; // a tie is the lower class
      });
      answers[network] = wins.indexOf(Math.max(...wins));
      votes[answers[network]]++;
    }
    const proba = Float64Array.from(votes, (count) => count / this.networks);
    return { label: votes.indexOf(Math.max(...votes)), proba, votes, answers };
  }

  // P(w = +1) over the networks, of each of a pair's inputs; a weight of +1 speaks for the higher
  weights(low, high) {
    const pair = this.pairs.findIndex(([a, b]) => a === low && b === high);
    return Float64Array.from({ length: this.inputs }, (_, i) => {
      let ones = 0;
      for (let network = 0; network < this.networks; network++) {
        ones += (this.words[this.start(network, pair) + (i >> 5)] >>> (i & 31)) & 1;
      }
      return ones / this.networks;
    });
  }

  start(network, pair) {
    return (network * this.pairs.length + pair) * this.length;
  }

  // Σ x_i·w_i over ±1: equal bits less unequal ones
  margin(network, pair, input) {
    const start = this.start(network, pair);
    let unequal = 0;
    for (let k = 0; k < this.length; k++) unequal += popcount(this.words[start + k] ^ input[k]);
    return this.size - 2 * unequal;
  }

  packed(row) {
    const words = new Uint32Array(this.length);
    for (let i = 0; i < this.size; i++) {
      if (i >= this.inputs || row[i]) words[i >> 5] |= 1 << (i & 31);
    }
    return words;
  }
}

// Octets of base64, lowest bit first, as rows of `size` bits in whole 32-bit words
export function unpacked(base64, rows, size, length) {
  const octets = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const words = new Uint32Array(rows * length);
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < size; i++) {
      const at = row * size + i;
      if ((octets[at >> 3] >> (at & 7)) & 1) words[row * length + (i >> 5)] |= 1 << (i & 31);
    }
  }
  return words;
}
