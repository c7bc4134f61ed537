// The loop around a solver: step, decode, score, keep the best. The twin of src/vitrail/solvers/run.py.

import { Key, Stream } from "./random.js";

export class Run {
  constructor(solver, graph, settings) {
    this.solver = solver;
    this.graph = graph;
    this.settings = settings;
    this.steps = 0;
    this.state = solver.init(graph, settings);
    this.info = null;
    this.bestCount = -1;
    this.best = null;
    this.score(new Key(settings.seed));
  }

  step() {
    const key = new Key(this.settings.seed, this.steps);
    const { state, info } = this.solver.step(this.graph, this.state, this.steps, this.settings);
    this.state = state;
    this.info = info;
    this.steps += 1;
    this.score(key);
  }

  get logOdds() {
    return this.solver.logOdds(this.graph, this.state);
  }

  get solved() {
    return this.bestCount === this.graph.numFactors;
  }

  // Decode (P > ½ is one, exactly ½ is settled by a coin) and look at the tracks
  score(key) {
    const logOdds = this.logOdds;
    const coins = key.lanes32(Stream.DECODE, 0, 0, new Float64Array(this.graph.arity));
    this.decoded = Uint8Array.from(logOdds, (x, i) => (x === 0 ? coins[i] >= 2 ** 31 : x > 0));
    this.count = this.graph.count(this.decoded);
    this.keep(this.decoded, this.count);
    for (const track of this.solver.tracks(this.graph, this.state)) {
      const bits = Uint8Array.from(track, (x, i) => (x === 0 ? this.decoded[i] : x > 0));
      this.keep(bits, this.graph.count(bits));
    }
  }

  keep(bits, count) {
    if (count > this.bestCount) [this.best, this.bestCount] = [bits, count];
  }
}
