// S4P, surveys sampled both ways: the twin of src/vitrail/solvers/s4p.py with flip(S) inside and
// weighted cavities (Algorithms 2 and 3 of the paper).

import { randomPrior, weightOfNew } from "./bp.js";
import { logMeans } from "./graph.js";
import { SAMPLED_LIMIT, clamp, logAddExp, roundHalfEven } from "./numerics.js";
import { Key, Stream, threshold } from "./random.js";
import { Grid, MASS_ONE, draw, relativeMasses, runningSums } from "./surveys.js";

export const BINS = 31;
const CERTAIN = 1000; // log-odds that stand for certainty
const grid = new Grid(BINS);

export const surveyPropagation = {
  name: "s4p",

  // Untouched surveys have all their mass at ½, so that no factor votes before its first update.
  init(graph, { seed, surveySamples }) {
    const edges = graph.numFactors * graph.arity;
    const surveys = new Float32Array(edges * BINS);
    for (let edge = 0; edge < edges; edge++) surveys[edge * BINS + (BINS - 1) / 2] = 1;
    return withDraws(graph, { surveys, prior: randomPrior(seed, graph.arity), seed, drawnAt: 0 }, surveySamples);
  },

  // settings: {seed, samples, surveySamples, beta, damping}; draws of another number of survey
  // samples are made again from their addresses
  step(graph, state, step, { seed, samples, surveySamples, beta, damping }) {
    if (surveySamples !== state.surveySamples) state = withDraws(graph, state, surveySamples);
    const { numFactors, arity } = graph;
    const key = new Key(seed, step);
    const table = pairTable(logMeans(beta, samples));
    const surveys = Float32Array.from(state.surveys);
    const edges = numFactors * surveySamples * arity;
    const hits = { one: new Int32Array(edges), zero: new Int32Array(edges) };
    const gamma = Math.fround(weightOfNew(damping));
    const kept = Math.fround(1 - gamma);
    const counts = new Float64Array(BINS);
    let effective = 0;
    for (let factor = 0; factor < numFactors; factor++) {
      const cavities = factorCavities(graph, state, key, factor);
      effective += cavities.effective;
      const start = factor * surveySamples * arity;
      for (let track = 0; track < surveySamples; track++) {
        const thresholds = cavities.thresholds.subarray(track * arity, (track + 1) * arity);
        const at = start + track * arity;
        graph.hits(key, factor, track * samples, samples, thresholds, hits.one, hits.zero, at);
      }
      for (let i = 0; i < arity; i++) {
        const total = factorHistogram(table, hits, start + i, arity, surveySamples, counts);
        const edge = (factor * arity + i) * BINS;
        if (total === 0) continue; // no draw carries mass: the old survey stays
        for (let k = 0; k < BINS; k++) {
          const fresh = Math.fround(counts[k] / total);
          surveys[edge + k] = Math.fround(kept * surveys[edge + k]) + Math.fround(gamma * fresh);
        }
      }
    }
    const next = { ...state, surveys, seed, drawnAt: step };
    const info = { ...hits, effective: effective / (numFactors * arity) };
    return { state: withDraws(graph, next, surveySamples), info };
  },

  // P(w = 1) = Z1/(Z1 + Z0) from the survey means, no sampling
  logOdds(graph, state) {
    return state.means.map((mean, i) => clamp(state.prior[i] + mean[0] - mean[1], CERTAIN));
  },

  messages: (graph, state) => state.messages,

  // The signs of each drawn belief; 0 leaves a weight to the decoded mean
  tracks(graph, state) {
    const { surveySamples, prior, totals } = state;
    return Array.from({ length: surveySamples }, (_, track) =>
      Array.from(prior, (odds, i) => {
        const at = track * graph.arity + i;
        return odds + totals[0][at] - totals[1][at];
      }),
    );
  },

  // The belief about one weight as [log-odds, mass] pairs, one a track
  survey(graph, state, variable) {
    const { surveySamples, prior, totals } = state;
    const odds = new Float64Array(surveySamples);
    const weights = new Float64Array(surveySamples);
    for (let track = 0; track < surveySamples; track++) {
      const at = track * graph.arity + variable;
      const one = prior[variable] + totals[0][at];
      odds[track] = one - totals[1][at];
      weights[track] = logAddExp(one, totals[1][at]);
    }
    const masses = relativeMasses(weights, new Float64Array(surveySamples));
    return Array.from(odds, (value, track) => [value, masses[track]]);
  },
};

// [log-odds, mass] pairs as a histogram that adds up to one
export function histogramOf(pairs) {
  const counts = new Float64Array(BINS);
  let total = 0;
  for (const [logOdds, mass] of pairs) {
    counts[grid.bin(logOdds)] += mass;
    total += mass;
  }
  return Float32Array.from(counts, (count) => count / total);
}

// What factors put into the sums of their variables: draws of every survey, and its log means.
function withDraws(graph, state, surveySamples) {
  const { numFactors, arity } = graph;
  const key = new Key(state.seed, state.drawnAt);
  const mass = Float64Array.from(state.surveys, (share) => roundHalfEven(share * MASS_ONE));
  const bins = new Uint16Array(numFactors * surveySamples * arity);
  const totals = [new Float64Array(surveySamples * arity), new Float64Array(surveySamples * arity)];
  const means = Array.from({ length: arity }, () => [0, 0]);
  const messages = new Float64Array(numFactors * arity);
  const lanes = new Uint32Array(surveySamples * arity);
  const running = new Float64Array(BINS);
  for (let factor = 0; factor < numFactors; factor++) {
    for (let track = 0; track < surveySamples; track++) {
      key.lanes32(Stream.SURVEY, factor, track, lanes.subarray(track * arity, (track + 1) * arity));
    }
    for (let i = 0; i < arity; i++) {
      const edge = (factor * arity + i) * BINS;
      runningSums(mass, edge, running);
      for (let track = 0; track < surveySamples; track++) {
        const at = track * arity + i;
        const bin = draw(running, lanes[at]);
        bins[factor * surveySamples * arity + at] = bin;
        totals[0][at] += grid.log[0][bin];
        totals[1][at] += grid.log[1][bin];
      }
      const [one, zero] = grid.logMeans(mass, edge);
      means[i][0] += one;
      means[i][1] += zero;
      messages[factor * arity + i] = one - zero;
    }
  }
  return { ...state, surveySamples, bins, totals, means, messages };
}

// Cavities of one factor, drawn by weight from the tracks without its own draws, as thresholds
function factorCavities(graph, state, key, factor) {
  const { arity } = graph;
  const { surveySamples, bins, totals, prior } = state;
  const thresholds = new Int32Array(surveySamples * arity);
  const odds = new Float64Array(surveySamples);
  const weights = new Float64Array(surveySamples);
  const masses = new Float64Array(surveySamples);
  const running = new Float64Array(surveySamples);
  const lanes = new Uint32Array(surveySamples * arity);
  for (let track = 0; track < surveySamples; track++) {
    key.lanes32(Stream.CAVITY, factor, track, lanes.subarray(track * arity, (track + 1) * arity));
  }
  let effective = 0;
  for (let i = 0; i < arity; i++) {
    for (let track = 0; track < surveySamples; track++) {
      const at = track * arity + i;
      const own = bins[factor * surveySamples * arity + at];
      const one = prior[i] + (totals[0][at] - grid.log[0][own]);
      const zero = totals[1][at] - grid.log[1][own];
      odds[track] = one - zero;
      weights[track] = logAddExp(one, zero);
    }
    relativeMasses(weights, masses);
    runningSums(masses, 0, running);
    let squares = 0;
    for (let track = 0; track < surveySamples; track++) {
      const at = track * arity + i;
      thresholds[at] = threshold(clamp(odds[draw(running, lanes[at])], SAMPLED_LIMIT));
      squares += masses[track] ** 2;
    }
    effective += running[surveySamples - 1] ** 2 / squares;
  }
  return { thresholds, effective };
}

// What a track with hits (one, zero) of S draws says: bin and log mass, at one·(S+1) + zero
function pairTable(logs) {
  const size = logs.length;
  const bins = new Uint16Array(size * size);
  const logMass = new Float64Array(size * size);
  for (let one = 0; one < size; one++) {
    for (let zero = 0; zero < size; zero++) {
      const mass = logAddExp(logs[one], logs[zero]);
      logMass[one * size + zero] = mass;
      bins[one * size + zero] = grid.bin(mass === -Infinity ? 0 : logs[one] - logs[zero]);
    }
  }
  return { size, bins, logMass };
}

// Mass p̃(1) + p̃(0) in the bin of p̃(1)/(p̃(1) + p̃(0)), over the tracks; returns the whole mass
function factorHistogram(table, hits, first, stride, surveySamples, counts) {
  const logMasses = new Float64Array(surveySamples);
  const pairs = new Int32Array(surveySamples);
  for (let track = 0; track < surveySamples; track++) {
    const at = first + track * stride;
    pairs[track] = hits.one[at] * table.size + hits.zero[at];
    logMasses[track] = table.logMass[pairs[track]];
  }
  const masses = relativeMasses(logMasses, new Float64Array(surveySamples));
  counts.fill(0);
  let total = 0;
  for (let track = 0; track < surveySamples; track++) {
    counts[table.bins[pairs[track]]] += masses[track];
    total += masses[track];
  }
  return total;
}
