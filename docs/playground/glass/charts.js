// What happened over the steps: where a weight's belief has its mass, and how many panes are lit.

const MARGIN = { left: 30, right: 12, top: 8, bottom: 22 };
const LEAST_STEPS = 30; // a chart does not start narrower

function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const style = getComputedStyle(canvas);
  const colour = (name) => style.getPropertyValue(name).trim();
  context.font = `11px ${style.fontFamily}`;
  return {
    context,
    colour,
    plot: {
      left: MARGIN.left,
      top: MARGIN.top,
      width: width - MARGIN.left - MARGIN.right,
      height: height - MARGIN.top - MARGIN.bottom,
    },
  };
}

function axes({ context, colour, plot }, steps, ticks) {
  context.fillStyle = colour("--panel");
  context.fillRect(plot.left, plot.top, plot.width, plot.height);
  context.fillStyle = colour("--muted");
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const [share, label] of ticks) {
    const y = plot.top + plot.height * (1 - share);
    context.fillText(label, plot.left - 6, Math.min(Math.max(y, 8), plot.top + plot.height - 2));
    context.globalAlpha = 0.25;
    context.fillRect(plot.left, y, plot.width, 1);
    context.globalAlpha = 1;
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  const every = [5, 10, 20, 50, 100].find((gap) => steps / gap <= 7) ?? 200;
  for (let step = every; step <= steps; step += every) {
    context.fillText(String(step), plot.left + (plot.width * (step - 0.5)) / steps, plot.top + plot.height + 6);
  }
}

// The survey of one weight after every step: rows of bins, from 0 at the bottom to 1 at the top
export function drawHops(canvas, surveys) {
  const sheet = prepared(canvas);
  const { context, colour, plot } = sheet;
  const steps = Math.max(LEAST_STEPS, surveys.length);
  axes(sheet, steps, [[0, "0"], [0.5, "½"], [1, "1"]]);
  const width = plot.width / steps;
  surveys.forEach((survey, step) => {
    const height = plot.height / survey.length;
    survey.forEach((mass, k) => {
      if (mass < 0.004) return;
      context.globalAlpha = Math.min(1, 0.12 + 0.88 * mass ** 0.6);
      context.fillStyle = colour(k * 2 < survey.length - 1 ? "--warm" : k * 2 > survey.length - 1 ? "--cool" : "--muted");
      const y = plot.top + plot.height - (k + 1) * height;
      context.fillRect(plot.left + step * width, y, Math.max(1, width - 0.5), Math.max(2, height));
    });
  });
  context.globalAlpha = 1;
}

// lines: [{colour, now: (steps) counts, best: (steps) counts}]
export function drawCounts(canvas, lines, total, optimum) {
  const sheet = prepared(canvas);
  const { context, colour, plot } = sheet;
  const most = Math.max(...lines.map((line) => line.now.length));
  const steps = Math.max(LEAST_STEPS, most);
  const low = Math.floor(Math.min(total / 2, ...lines.flatMap((line) => line.now)));
  const share = (count) => (count - low) / Math.max(1, total - low);
  const ticks = [[share(low), String(low)], [1, String(total)]];
  if (optimum > low && optimum < total) ticks.push([share(optimum), String(optimum)]);
  axes(sheet, steps, ticks);
  const x = (step) => plot.left + (plot.width * (step + 0.5)) / steps;
  const y = (count) => plot.top + plot.height * (1 - share(count));
  context.strokeStyle = colour("--ink");
  context.setLineDash([4, 4]);
  context.beginPath();
  context.moveTo(plot.left, y(optimum));
  context.lineTo(plot.left + plot.width, y(optimum));
  context.stroke();
  context.setLineDash([]);
  for (const line of lines) {
    context.strokeStyle = colour(line.colour);
    trace(context, line.now, x, y, 1.2, 0.55);
    trace(context, line.best, x, y, 3, 1);
  }
}

function trace(context, counts, x, y, width, alpha) {
  if (!counts.length) return;
  context.globalAlpha = alpha;
  context.lineWidth = width;
  context.lineJoin = "round";
  context.beginPath();
  counts.forEach((count, step) => context.lineTo(x(step), y(count)));
  if (counts.length === 1) context.lineTo(x(0) + 2, y(counts[0]));
  context.stroke();
  context.globalAlpha = 1;
}
