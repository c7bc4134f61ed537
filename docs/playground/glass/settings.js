// The settings of a run: their values, how they are shown, and how an address spells them.

export const SETTINGS = {
  data: { values: ["glass", "stained"], usual: "glass" },
  examples: { values: range(5, 40), usual: 20 },
  weights: { values: range(5, 16), usual: 10 },
  beta: { values: [0.1, 0.3, 1, 2, 3, 5, 10, Infinity], usual: Infinity, live: true },
  damping: { values: range(0, 19).map((k) => k / 20), usual: 0.5, live: true },
  samples: { values: [1, 2, 3, 5, 8, 12, 20, 50], usual: 5, live: true },
  surveySamples: { values: [1, 2, 5, 10, 20, 50, 100, 200, 500], usual: 100, live: true },
  seed: { values: null, usual: 0 }, // any whole number below 2³²
  solver: { values: ["bp", "s4p"], usual: "s4p" },
};

function range(first, last) {
  return Array.from({ length: last - first + 1 }, (_, k) => first + k);
}

export const spelled = (value) => (value === Infinity ? "inf" : String(value));

// Settings from "#beta=3&seed=7"; what is missing or makes no sense is as usual.
export function fromHash(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  return Object.fromEntries(
    Object.entries(SETTINGS).map(([name, { values, usual }]) => {
      const text = given.get(name);
      if (values === null) return [name, text === null ? usual : wholeNumber(text, usual)];
      return [name, values.find((value) => spelled(value) === text) ?? usual];
    }),
  );
}

export function toHash(settings) {
  const changed = Object.entries(SETTINGS).filter(([name, { usual }]) => settings[name] !== usual);
  return new URLSearchParams(changed.map(([name]) => [name, spelled(settings[name])])).toString();
}

export function wholeNumber(text, otherwise) {
  const number = Number(text);
  return text !== "" && Number.isInteger(number) && number >= 0 && number < 2 ** 32 ? number : otherwise;
}

// The same run in Python; it gives the same numbers.
export function asPython({ data, examples, weights, beta, damping, samples, surveySamples, seed, solver }, steps) {
  const make = data === "glass" ? "glass" : "stained_glass";
  const surveys = solver === "s4p";
  const call = surveys
    ? `s4p(flip(${samples}), variable=weighted(), survey_samples=${surveySamples}, bins=31, damping=${damping})`
    : `belief_propagation(flip(${samples}), damping=${damping})`;
  return [
    "from math import inf",
    "from vitrail import factor_graph, perceptron, run",
    `from vitrail.datasets import ${make}`,
    `from vitrail.solvers import ${surveys ? "s4p" : "belief_propagation"}`,
    ...(surveys ? ["from vitrail.surveys import weighted"] : []),
    "from vitrail.updates import flip",
    "",
    `data = ${make}(${examples}, ${weights}, seed=${seed})`,
    `graph = factor_graph(perceptron(data.inputs, data.labels, beta=${spelled(beta)}))`,
    `solver = ${call}`,
    `found = run(solver, graph, seed=${seed}, max_steps=${Math.max(steps, 1)})`,
    "print(found.history[\"accuracy\"][:, 0] * graph.num_factors)  # panes lit after each step",
    "",
  ].join("\n");
}
