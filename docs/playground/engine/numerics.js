// Numbers as vitrail keeps them: lattices, limits, and the few functions whose rounding matters.
// The twin of src/vitrail/numerics.py; every formula is spelled as there, operation by operation.

export const EXACT_LIMIT = 30; // log-odds
export const SAMPLED_LIMIT = Math.log(999); // p within [0.001, 0.999]
export const MESSAGE_LATTICE = 2 ** 19; // messages are multiples of 1/2¹⁹

// Half to even, as torch.round has it; Math.round takes halves up.
export function roundHalfEven(x) {
  const floor = Math.floor(x);
  const rest = x - floor;
  if (rest < 0.5) return floor;
  if (rest > 0.5) return floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

export const onLattice = (x, lattice = MESSAGE_LATTICE) => roundHalfEven(x * lattice) / lattice;

export const clamp = (x, limit) => Math.min(Math.max(x, -limit), limit);

export const sigmoid = (x) => 1 / (1 + Math.exp(-x));

export const logit = (p) => Math.log(p / (1 - p));

export function logAddExp(a, b) {
  if (a === b && !Number.isFinite(a)) return a;
  return Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));
}
