@about@
//
//   predict(row)        {label, number, proba, probaParts, votes} of a row: an object that has the
//                       columns as its own properties, or an array in the order of `columns`
//   encode(row)         its bits, which predictBits(bits) answers in the same way
//   check()             how many rows with known answers get another answer here
//
// label: the class; number: its place in `classes`; probaParts: probabilities, in parts of 65535;
// proba: the same as shares of 1; votes: how many networks answer each class alone.

const MODEL = @model@;

const GOLDEN = @golden@;

export const classes = MODEL.classes;
export const columns = MODEL.columns.map((column) => column.name);

const MISSING = new Set(@missing@);
const BLANKS = @blanks@; // what does not count around text
const LARGEST = 3.4028234663852886e38; // of float32
const WEIGHTS = MODEL.stages.map((stage) => (stage.weights ? unpacked(stage.weights) : null));

function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const words = new Uint32Array(bytes.length / 4);
  for (let i = 0; i < bytes.length; i++) words[i >> 2] |= bytes[i] << (8 * (i & 3));
  return words;
}

// Cells, read as Python reads them.

function stripped(text) {
  let first = 0, end = text.length;
  while (first < end && BLANKS.includes(text[first])) first++;
  while (end > first && BLANKS.includes(text[end - 1])) end--;
  return text.slice(first, end);
}

function asNumber(cell) {
  if (typeof cell !== "string") return Number(cell ?? NaN);
  const text = stripped(cell);
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return Number(text);
  if (/^[+-]?inf(inity)?$/i.test(text)) return text[0] === "-" ? -Infinity : Infinity;
  if (/^(true|false)$/i.test(text)) return Number(text.length === 4);
  return NaN;
}

function isMissing(cell) {
  if (typeof cell === "string") return MISSING.has(stripped(cell).toLowerCase());
  return cell === null || cell === undefined || Number.isNaN(cell);
}

function asWord(cell) {
  if (typeof cell === "boolean") return cell ? "True" : "False";
  if (typeof cell === "number") return numberAsWord(cell);
  return stripped(String(cell)).replace(/\p{Surrogate}/gu, "?");
}

function numberAsWord(number) {
  if (Number.isInteger(number)) return BigInt(number).toString();
  if (!Number.isFinite(number)) return number > 0 ? "inf" : "-inf";
  if (Math.abs(number) >= 1e-4) return String(number);
  return number.toExponential().replace(/-(\d)$/, "-0$1");
}

function checked(column, cell) {
  const kind = cell === null ? "undefined" : typeof cell;
  if (["undefined", "boolean", "number", "bigint", "string"].includes(kind)) return cell;
  throw new Error(`column ${column.name}: expected a number, text or boolean, found ${kind}`);
}

function tableBits(column, cell) {
  let missing = isMissing(cell);
  const unread = missing || (typeof cell === "string" && !column.bare);
  let value = unread ? NaN : asNumber(cell);
  let isWord = column.numeric ? !missing && Number.isNaN(value) : !missing || !column.missing;
  const found = isWord ? column.categories.indexOf(missing ? "" : asWord(cell)) : -1;
  if (column.numeric && found < 0) {
    const odd = typeof cell === "string" && /^[^A-Za-z0-9]*[0-9]/.test(cell);
    if (odd && (isWord || !column.plain)) {
      throw new Error(`column ${column.name}: expected a number, found ${cell}`);
    }
    if (isWord && !column.other) {
      missing = true; // a word that means nothing here
      isWord = false;
    }
  }
  const bits = column.categories.map((_, i) => Number(i === found));
  if (column.other) bits.push(Number(isWord && found < 0));
  if (column.numeric) {
    if (missing && !column.missing) value = column.typical;
    if (column.held_as === "float32") {
      value = Math.fround(Math.min(LARGEST, Math.max(-LARGEST, value)));
    }
    const known = !Number.isNaN(value);
    const above = column.thresholds.map((threshold) => Number(known && value > threshold));
    const bin = above.reduce((sum, bit) => sum + bit, 0);
    for (let i = 0; i < column.bins; i++) bits.push(Number(known && i === bin));
    if (column.bins !== 2) bits.push(...above);
    if (column.both) bits.push(...above.map((bit) => Number(known && !bit)));
  }
  if (column.missing) bits.push(Number(missing));
  return bits;
}

function pixel(column, cell) {
  const value = asNumber(cell);
  if (!(value >= MODEL.low && value <= MODEL.high)) {
    throw new Error(`column ${column.name}: expected ${MODEL.low} to ${MODEL.high}, found ${cell}`);
  }
  return value;
}

export function encode(row) {
  const inOrder = Array.isArray(row) || ArrayBuffer.isView(row);
  if (inOrder && row.length !== columns.length) {
    throw new Error(`expected ${columns.length} columns, got ${row.length}`);
  }
  const read = MODEL.table ? tableBits : pixel;
  const found = MODEL.columns.map((column, i) => {
    if (!inOrder && !Object.hasOwn(row, column.name)) {
      throw new Error(`column ${column.name} not found`);
    }
    return read(column, checked(column, inOrder ? row[i] : row[column.name]));
  });
  if (MODEL.table) return Uint8Array.from(found.flat());
  return Uint8Array.from(MODEL.cuts.flatMap((cut) => found.map((value) => Number(value > cut))));
}

// The net: layers read bits and give bits, the last one sums.

function ones(x) {
  x -= (x >>> 1) & 0x55555555;
  x = (x & 0x33333333) + ((x >>> 2) & 0x33333333);
  return Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

function packed(bits, from, count) {
  const words = new Uint32Array((count + 31) >> 5);
  for (let i = 0; i < count; i++) words[i >> 5] |= bits[from[i]] << (i & 31);
  return words;
}

function sum(stage, weights, first, x, mask) {
  let both = 0, either = 0, w = 0, values = 0, n = 0;
  for (let i = 0; i < x.length; i++) {
    const v = weights[first + i] & mask[i];
    both += ones(v & x[i]);
    either += ones(v ^ x[i]);
    w += ones(v);
    values += ones(x[i]);
    n += ones(mask[i]);
  }
  if (stage.weightLow < 0) return stage.valueLow < 0 ? n - 2 * either : 2 * both - values;
  return stage.valueLow < 0 ? 2 * both - w : both;
}

// Where the bits of each window lie; −1 beyond the image.
function windows({ channels, size, kernel, stride, padding, places }, each) {
  const found = [];
  for (let c = 0; c < (each ? channels : 1); c++) {
    for (let row = 0; row < places[0]; row++) {
      for (let column = 0; column < places[1]; column++) {
        const window = [];
        for (let d = each ? c : 0; d < (each ? c + 1 : channels); d++) {
          for (let i = 0; i < kernel[0]; i++) {
            for (let j = 0; j < kernel[1]; j++) {
              const y = row * stride[0] + i - padding[0];
              const x = column * stride[1] + j - padding[1];
              const inside = y >= 0 && y < size[0] && x >= 0 && x < size[1];
              window.push(inside ? (d * size[0] + y) * size[1] + x : -1);
            }
          }
        }
        found.push(window);
      }
    }
  }
  return found;
}

const WINDOWS = MODEL.stages.map((stage) => {
  if (stage.windows) return windows(stage.windows, !stage.weights);
  return [Array.from({ length: stage.fanIn }, (_, i) => i)];
});

function outputs(network, bits) {
  for (const [number, stage] of MODEL.stages.entries()) {
    const weights = WEIGHTS[number], all = WINDOWS[number];
    if (!weights) {
      bits = Uint8Array.from(all, (window) => Number(window.some((place) => bits[place])));
      continue;
    }
    const row = (stage.fanIn + 31) >> 5;
    const sums = new Array(stage.units * all.length);
    for (const [place, window] of all.entries()) {
      const x = packed(bits, window, stage.fanIn);
      const inside = window.map((from) => Number(from >= 0));
      const mask = packed(inside, window.map((_, i) => i), stage.fanIn);
      for (let unit = 0; unit < stage.units; unit++) {
        const first = (network * stage.units + unit) * row;
        sums[unit * all.length + place] = sum(stage, weights, first, x, mask);
      }
    }
    if (number === MODEL.stages.length - 1) {
      return MODEL.lastLow === null ? sums : sums.map((h) => (h > 0 ? 1 : MODEL.lastLow));
    }
    bits = Uint8Array.from(sums, (h) => Number(h > 0));
  }
}

// The answer of all networks, in whole numbers.

function divided(a, b) {
  return (a - (((a % b) + b) % b)) / b;
}

function leads(h) {
  if (h.length === 1) return h;
  return h.map((mine, c) =>
    Math.min(...h.map((other, d) => (c === d ? Infinity : mine - other + Number(c < d)))));
}

function calibrated(score, net) {
  const most = MODEL.clip * MODEL.votes[net].reduce((total, vote) => total + vote, 0);
  return MODEL.calibration[net][divided((score + most) * 256, 2 * most)];
}

const PAIRS = MODEL.pairs.length > 1 && MODEL.pairs[0][0] !== null; // a class costs in each

function highest(values) {
  return values.indexOf(Math.max(...values));
}

export function predictBits(bits) {
  const values = Uint8Array.from([...bits, ...new Array(MODEL.bias).fill(1)]);
  const networks = MODEL.votes[0].length;
  const wins = Array.from({ length: networks }, () => new Array(classes.length).fill(0));
  const rank = new Array(classes.length).fill(0);
  for (const [net, [low, high]] of MODEL.pairs.entries()) {
    const scores = [];
    for (let k = 0; k < networks; k++) {
      const lead = leads(outputs(net * networks + k, values));
      for (const [c, h] of lead.entries()) {
        const margin = Math.max(-MODEL.clip, Math.min(MODEL.clip, 2 * h - 1));
        scores[c] = (scores[c] ?? 0) + MODEL.votes[net][k] * margin;
        if (lead.length > 1) wins[k][c] += Number(h > 0);
      }
      if (lead.length > 1) continue;
      if (low === null) wins[k][high] = lead[0];
      else wins[k][lead[0] > 0 ? high : low]++;
    }
    if (scores.length > 1) {
      for (const [c, score] of scores.entries()) rank[c] = calibrated(score, net);
    } else {
      const q = calibrated(scores[0], net);
      const inPair = (mine) => (PAIRS ? divided(2 ** 30, Math.max(64, mine)) : mine);
      if (low !== null) rank[low] += inPair(65535 - q);
      rank[high] += inPair(q);
    }
  }
  for (const [c, cost] of PAIRS ? rank.entries() : []) {
    rank[c] = divided(2 ** 30, cost - 2 ** 14 * (rank.length - 2));
  }
  const number = highest(rank);
  const total = Math.max(1, rank.reduce((a, b) => a + b, 0));
  const probaParts = rank.map((score) => divided(score * 65535, total));
  probaParts[number] += 65535 - probaParts.reduce((a, b) => a + b, 0);
  const votes = new Array(classes.length).fill(0);
  for (const won of wins) votes[highest(won)]++;
  const proba = probaParts.map((q) => q / 65535);
  return { label: classes[number], number, proba, probaParts, votes };
}

export function predict(row) {
  return predictBits(encode(row));
}

export function check() {
  return GOLDEN.filter(({ row, number, probaParts }) => {
    const found = predict(row);
    return found.number !== number || found.probaParts.some((q, c) => q !== probaParts[c]);
  }).length;
}
