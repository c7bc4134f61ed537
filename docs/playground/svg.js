// Small helpers for drawing: SVG elements, and the colours of the glass.

const NAMESPACE = "http://www.w3.org/2000/svg";

export function element(name, attributes = {}, children = []) {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// A repeatable number in [0, 1) for hand-made irregularities; not for the engine.
export function jitter(...numbers) {
  let hash = 0x811c9dc5;
  for (const number of numbers) hash = Math.imul(hash ^ (number + 1), 0x01000193) ^ (hash >>> 13);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return ((hash ^ (hash >>> 12)) >>> 0) / 2 ** 32;
}

// Every weight has a cool hue for +1 and a warm one for −1, so that its pieces can be told apart.
const cool = (i, count) => 205 + (95 * ((i * 7) % count)) / count;
const warm = (i, count) => 22 + (72 * ((i * 3) % count)) / count;

// The glass of weight i when P(w = 1) is p: clear at ½, deep towards 0 and 1.
export function glassColour(p, i, count, shade = 0) {
  const lean = 2 * p - 1;
  const depth = Math.min(1, Math.abs(lean)) ** 0.6;
  const hue = lean >= 0 ? cool(i, count) : warm(i, count);
  const [lightness, chroma] = lean >= 0 ? [0.53, 0.2] : [0.67, 0.175];
  const mixed = (clear, deep) => clear + (deep - clear) * depth;
  return `oklch(${(mixed(0.81, lightness) + shade).toFixed(3)} ${mixed(0.035, chroma).toFixed(3)} ${hue.toFixed(1)})`;
}

// A tile of fine noise for the surface of the glass, as an image address
export function noiseTile(size = 128) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  const image = context.createImageData(size, size);
  for (let at = 0; at < size * size; at++) {
    const [x, y] = [at % size, Math.floor(at / size)];
    const streak = jitter(Math.floor(x / 3), Math.floor(y / 14)); // drawn glass has long bubbles
    const grey = 128 + 70 * (jitter(x, y) - 0.5) + 80 * (streak - 0.5);
    image.data.set([grey, grey, grey, 255], 4 * at);
  }
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}
