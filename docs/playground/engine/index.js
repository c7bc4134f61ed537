// Everything the page and the tests use of the engine.

export { beliefPropagation } from "./bp.js";
export { glass, stainedGlass } from "./data.js";
export { Perceptrons } from "./graph.js";
export { Key, Stream, threshold, thresholdEdges } from "./random.js";
export { Run } from "./run.js";
export { BINS, histogramOf, surveyPropagation } from "./s4p.js";
export { sigmoid } from "./numerics.js";
