// From strokes to 14×14 bits, as MNIST was made: the ink fits a box of 20×20 in a field of 28×28,
// its centre of mass is the field's centre; then the largest of each 2×2 block, above a half.

export const SIDE = 14;
const FIELD = 28;
const BOX = 20;
const PEN = 2.6; // in units of the field; strokes of MNIST are about as wide
const SMALLEST = 12; // in units of the drawing: below, a dot stays a dot

// strokes: lists of [x, y]; 196 bits, 0 or 1
export function bitsOf(strokes) {
  const points = strokes.flat();
  if (!points.length) return new Uint8Array(SIDE * SIDE);
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const [width, height] = [Math.max(...xs) - left, Math.max(...ys) - top];
  const scale = (BOX - PEN) / Math.max(width, height, SMALLEST);
  const place = ([x, y]) => [
    (x - left - width / 2) * scale + FIELD / 2,
    (y - top - height / 2) * scale + FIELD / 2,
  ];
  const centred = strokes.map((stroke) => stroke.map(place));
  const [x, y] = centreOfMass(inkOf(centred, 0, 0));
  const ink = inkOf(centred, Math.round(FIELD / 2 - x), Math.round(FIELD / 2 - y));
  return Uint8Array.from({ length: SIDE * SIDE }, (_, at) => {
    const corner = Math.floor(at / SIDE) * 2 * FIELD + (at % SIDE) * 2;
    return [0, 1, FIELD, FIELD + 1].some((offset) => ink[corner + offset] >= 128) ? 1 : 0;
  });
}

// How dark each point of the field is, 0…255, with strokes moved by (dx, dy)
function inkOf(strokes, dx, dy) {
  const canvas = new OffscreenCanvas(FIELD, FIELD);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  Object.assign(context, { lineWidth: PEN, lineCap: "round", lineJoin: "round" });
  context.translate(dx, dy);
  for (const stroke of strokes) {
    context.beginPath();
    context.moveTo(...stroke[0]);
    for (const point of stroke.length > 1 ? stroke.slice(1) : stroke) context.lineTo(...point);
    context.stroke();
  }
  const { data } = context.getImageData(0, 0, FIELD, FIELD);
  return Uint8Array.from({ length: FIELD * FIELD }, (_, at) => data[4 * at + 3]);
}

function centreOfMass(ink) {
  let [mass, x, y] = [0, 0, 0];
  ink.forEach((dark, at) => {
    mass += dark;
    x += dark * ((at % FIELD) + 0.5);
    y += dark * (Math.floor(at / FIELD) + 0.5);
  });
  return mass ? [x / mass, y / mass] : [FIELD / 2, FIELD / 2];
}
