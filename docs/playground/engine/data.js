// Random problems as src/vitrail/datasets/glass.py makes them: the same bits for the same seed.

// What a stream of words is for.
const Purpose = { INPUTS: 0, LABELS: 1, TEACHER: 4 };

const MASK64 = (1n << 64n) - 1n;
const MASK128 = (1n << 128n) - 1n;
const MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;
const POOL = 4;

// numpy's SeedSequence(seed, spawn_key=(purpose,)): eight 32-bit words.
function seedWords(seed, purpose) {
  let hash = 0x43b0d7e5;
  const hashed = (value) => {
    value = (value ^ hash) >>> 0;
    hash = Math.imul(hash, 0x931e8875) >>> 0;
    value = Math.imul(value, hash) >>> 0;
    return (value ^ (value >>> 16)) >>> 0;
  };
  const mixed = (x, y) => {
    const value = (Math.imul(x, 0xca01f9dd) - Math.imul(y, 0x4973f715)) >>> 0;
    return (value ^ (value >>> 16)) >>> 0;
  };
  // the seed fills the pool (with zeros after it); the purpose follows
  const entropy = [seed >>> 0, Math.floor(seed / 2 ** 32), 0, 0];
  const pool = entropy.map(hashed);
  for (let from = 0; from < POOL; from++) {
    for (let to = 0; to < POOL; to++) {
      if (from !== to) pool[to] = mixed(pool[to], hashed(pool[from]));
    }
  }
  for (let to = 0; to < POOL; to++) pool[to] = mixed(pool[to], hashed(purpose));
  let state = 0x8b51f9dd;
  return Array.from({ length: 8 }, (_, i) => {
    let value = (pool[i % POOL] ^ state) >>> 0;
    state = Math.imul(state, 0x58f38ded) >>> 0;
    value = Math.imul(value, state) >>> 0;
    return (value ^ (value >>> 16)) >>> 0;
  });
}

// The first fair bits of a stream: PCG64's raw words, lowest bit first.
export function randomBits(seed, purpose, count) {
  const halves = seedWords(seed, purpose).map(BigInt);
  const word64 = (i) => halves[2 * i] | (halves[2 * i + 1] << 32n);
  const start = (word64(0) << 64n) | word64(1);
  const increment = ((((word64(2) << 64n) | word64(3)) << 1n) | 1n) & MASK128;
  const next = (state) => (state * MULTIPLIER + increment) & MASK128;
  let state = next((increment + start) & MASK128);
  const bits = new Uint8Array(count);
  for (let first = 0; first < count; first += 64) {
    state = next(state);
    const folded = (state >> 64n) ^ (state & MASK64);
    const turn = state >> 122n;
    const word = ((folded >> turn) | (folded << ((64n - turn) & 63n))) & MASK64;
    for (let i = 0; i < 64 && first + i < count; i++) bits[first + i] = Number((word >> BigInt(i)) & 1n);
  }
  return bits;
}

const signs = (bits) => Int8Array.from(bits, (bit) => 2 * bit - 1);

// Inputs and labels are fair bits: nothing to learn, only to satisfy.
export function glass(examples, weights, seed) {
  const inputs = signs(randomBits(seed, Purpose.INPUTS, examples * weights));
  return { examples, weights, inputs, labels: randomBits(seed, Purpose.LABELS, examples) };
}

// Inputs are fair bits; the label is what a random teacher with one hidden layer makes of them.
export function stainedGlass(examples, weights, seed) {
  const { inputs } = glass(examples, weights, seed);
  const teacher = signs(randomBits(seed, Purpose.TEACHER, weights * weights + weights));
  const labels = Uint8Array.from({ length: examples }, (_, example) => {
    let output = 0;
    for (let unit = 0; unit < weights; unit++) {
      let sum = 0;
      for (let i = 0; i < weights; i++) sum += inputs[example * weights + i] * teacher[i * weights + unit];
      output += (sum > 0 ? 1 : -1) * teacher[weights * weights + unit];
    }
    return output > 0 ? 1 : 0;
  });
  return { examples, weights, inputs, labels };
}
