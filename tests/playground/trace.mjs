// What the tests compare with Python, taken from a run of the playground's engine.

// Sums that change when any number or its place changes, small enough for exact integers.
const checksum = (numbers) => numbers.reduce((sum, number, at) => sum + number * ((at % 97) + 1), 0);

export class Trace {
  constructor(run) {
    this.run = run;
    this.rows = [];
  }

  // After every step
  record() {
    const { run } = this;
    this.rows.push({
      hits: [checksum(run.info.one), checksum(run.info.zero)],
      messages: [...run.solver.messages(run.graph, run.state)],
      logOdds: [...run.logOdds],
      count: run.count,
      best: run.bestCount,
    });
  }

  // At the end
  whole() {
    const { run, rows } = this;
    return {
      rows,
      inputs: [...run.graph.inputs],
      labels: [...run.graph.labels],
      one: [...run.info.one],
      zero: [...run.info.zero],
      surveys: run.state.surveys ? [...run.state.surveys] : null,
      effective: run.info.effective ?? null,
      decoded: [...run.decoded],
    };
  }
}

// A run of the engine by itself
export function traced(engine, settings, steps) {
  const make = settings.data === "glass" ? engine.glass : engine.stainedGlass;
  const graph = new engine.Perceptrons(make(settings.examples, settings.weights, settings.seed));
  const solver = settings.solver === "bp" ? engine.beliefPropagation : engine.surveyPropagation;
  const trace = new Trace(new engine.Run(solver, graph, settings));
  for (let step = 0; step < steps; step++) {
    trace.run.step();
    trace.record();
  }
  return trace.whole();
}

// Draws at addresses [stream, factor, sample], and thresholds of log-odds
export function draws(engine, { seed, step, addresses, slots, logOdds }) {
  const key = new engine.Key(seed, step);
  return {
    lanes16: addresses.map((address) => [...key.lanes16(...address, new Uint16Array(slots))]),
    lanes32: addresses.map((address) => [...key.lanes32(...address, new Uint32Array(slots))]),
    normal: [...key.normal(slots)],
    thresholds: logOdds.map(engine.threshold),
    edges: [...engine.thresholdEdges].slice(1, -1),
  };
}
