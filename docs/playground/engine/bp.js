// Belief propagation with sampled messages: the twin of src/vitrail/solvers/bp.py with flip(S).

import { logMeans } from "./graph.js";
import { EXACT_LIMIT, SAMPLED_LIMIT, clamp, logit, onLattice, sigmoid } from "./numerics.js";
import { Key, threshold } from "./random.js";

const PRIOR_SCALE = 0.1; // log-odds; enough to break the symmetry

export function randomPrior(seed, numVariables) {
  return new Key(seed).normal(numVariables).map((x) => onLattice(PRIOR_SCALE * x));
}

// γ = 1 − damping as the decimal it was meant to be; damping is the share of the old message kept.
export const weightOfNew = (damping) => Number((1 - damping).toFixed(12));

function damped(old, fresh, gamma) {
  if (gamma >= 1) return onLattice(fresh);
  const mixed = logit(sigmoid(old) * (1 - gamma) + sigmoid(fresh) * gamma);
  return onLattice(clamp(mixed, EXACT_LIMIT));
}

export const beliefPropagation = {
  name: "bp",

  init(graph, { seed }) {
    const prior = randomPrior(seed, graph.arity);
    return { messages: new Float64Array(graph.numFactors * graph.arity), belief: prior, prior };
  },

  // One update of every message. settings: {seed, samples, beta, damping}
  step(graph, state, step, { seed, samples, beta, damping }) {
    const { numFactors, arity } = graph;
    const key = new Key(seed, step);
    const logs = logMeans(beta, samples);
    const gamma = weightOfNew(damping);
    const thresholds = new Int32Array(arity);
    const one = new Int32Array(numFactors * arity);
    const zero = new Int32Array(numFactors * arity);
    const messages = new Float64Array(numFactors * arity);
    const belief = Float64Array.from(state.prior);
    for (let factor = 0; factor < numFactors; factor++) {
      const row = factor * arity;
      for (let i = 0; i < arity; i++) {
        thresholds[i] = threshold(clamp(state.belief[i] - state.messages[row + i], SAMPLED_LIMIT));
      }
      graph.hits(key, factor, 0, samples, thresholds, one, zero, row);
      for (let i = 0; i < arity; i++) {
        const [logOne, logZero] = [logs[one[row + i]], logs[zero[row + i]]];
        const starved = logOne === -Infinity && logZero === -Infinity;
        const fresh = starved ? 0 : clamp(logOne - logZero, SAMPLED_LIMIT);
        messages[row + i] = damped(state.messages[row + i], fresh, gamma);
        belief[i] += messages[row + i]; // exact on the lattice, whatever the order
      }
    }
    return { state: { ...state, messages, belief }, info: { one, zero } };
  },

  logOdds: (graph, state) => state.belief,

  // Factor→variable messages as log-odds, for drawing
  messages: (graph, state) => state.messages,

  // Further configurations worth a look, beside the decoded one
  tracks: () => [],

  // The belief about one weight as [log-odds, mass] pairs
  survey: (graph, state, variable) => [[state.belief[variable], 1]],
};
