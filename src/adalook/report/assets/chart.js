// Small line charts in plain SVG.

const SVG = "http://www.w3.org/2000/svg";
const CHART = { width: 420, height: 200, left: 52, right: 12, top: 10, bottom: 34 };
const LEAST_DECADE = -9; // nearer than this a distance is rounding, and drawn as zero

function draw(parent, name, attributes, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  parent.append(element);
  return element;
}

/** From counts to heights on a linear axis that starts at zero. */
function countAxis(counts) {
  const high = counts.reduce((most, count) => Math.max(most, count), 1);
  const step = Math.max(1, niceStep(high, 4));
  const ticks = [];
  for (let at = 0; at <= high * (1 + 1e-9); at += step) ticks.push([at / high, rounded(at)]);
  return { share: (number) => number / high, ticks };
}

/** From positive numbers to heights on an axis in powers of ten, with zero one step below the smallest. */
function logAxis(numbers) {
  const powers = numbers.filter((number) => number > 10 ** LEAST_DECADE).map(Math.log10);
  const high = Math.ceil(powers.reduce((one, other) => Math.max(one, other), -Infinity) - 1e-9);
  const lowest = Math.floor(powers.reduce((one, other) => Math.min(one, other), Infinity) + 1e-9);
  if (!powers.length) return { share: () => 0, ticks: [[0, "≈ 0"]] };
  const zero = Math.min(lowest, high - 1) - 1;
  const share = (number) => (number > 10 ** LEAST_DECADE ? (Math.log10(number) - zero) / (high - zero) : 0);
  const every = Math.max(1, Math.ceil((high - zero) / 5));
  const ticks = [[0, "≈ 0"]];
  for (let power = high; share(10 ** power) > 0.12; power -= every) {
    ticks.push([share(10 ** power), Math.abs(power) > 3 ? `1e${power}` : short(10 ** power)]);
  }
  return { share, ticks };
}

/** Whole numbers, as few as fit. */
function countTicks(high, most = 6) {
  const step = Math.max(1, niceStep(Math.max(1, high), most));
  const ticks = [];
  for (let at = 0; at <= high + 1e-9; at += step) ticks.push([high ? at / high : 0, rounded(at)]);
  return ticks;
}

/**
 * Draw a chart.
 *
 * @param {SVGElement} svg filled anew
 * @param chart {lines: [{name, x: [], y: [], mark: index | null}], axis: countAxis | logAxis, across, up}
 *   `mark` is the point that stands for now.
 */
function drawChart(svg, { lines, axis, across, up }) {
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${CHART.width} ${CHART.height}`);
  const inner = { width: CHART.width - CHART.left - CHART.right, height: CHART.height - CHART.top - CHART.bottom };
  const known = lines.map((line) => ({ ...line, y: line.y.map((number) => (number === null ? NaN : number)) }));
  const vertical = axis(known.flatMap((line) => line.y.filter(Number.isFinite)));
  const high = Math.max(0, ...known.map((line) => line.x[line.x.length - 1]));
  const x = (number) => CHART.left + (high ? number / high : 0) * inner.width;
  const y = (number) => CHART.top + (1 - vertical.share(number)) * inner.height;
  for (const [share, text] of vertical.ticks) {
    const at = CHART.top + (1 - share) * inner.height;
    draw(svg, "line", { x1: CHART.left, x2: CHART.width - CHART.right, y1: at, y2: at, class: "grid" });
    draw(svg, "text", { x: CHART.left - 6, y: at + 4, class: "tick", "text-anchor": "end" }, text);
  }
  for (const [share, text] of countTicks(high)) {
    const at = CHART.left + share * inner.width;
    draw(svg, "line", { x1: at, x2: at, y1: CHART.height - CHART.bottom, y2: CHART.height - CHART.bottom + 4, class: "axis" });
    draw(svg, "text", { x: at, y: CHART.height - CHART.bottom + 16, class: "tick", "text-anchor": "middle" }, text);
  }
  draw(svg, "text", { x: CHART.width - CHART.right, y: CHART.height - 3, class: "label", "text-anchor": "end" }, across);
  for (const line of known) drawLine(svg, line, x, y);
  svg.setAttribute("aria-label", `${up} over ${across}: ${known.map(inWords).join("; ")}`);
  return { position: (pixel) => ((pixel - CHART.left) / inner.width) * high };
}

function drawLine(svg, { name, x: xs, y: ys, mark }, x, y) {
  const group = draw(svg, "g", { class: `line line-${name}` });
  const points = xs.map((number, i) => [x(number), y(ys[i])]).filter((_, i) => Number.isFinite(ys[i])); // what is not known is not zero
  draw(group, "polyline", { points: points.map((point) => point.map((n) => n.toFixed(1)).join(",")).join(" ") });
  if (points.length <= 40) for (const [cx, cy] of points) draw(group, "circle", { cx, cy, r: 2.2 });
  if (mark === null || mark === undefined) return;
  const at = x(xs[mark]);
  draw(group, "line", { x1: at, x2: at, y1: CHART.top, y2: CHART.height - CHART.bottom, class: "now" });
  if (!Number.isFinite(ys[mark])) return;
  const [cx, cy] = [at, y(ys[mark])];
  if (name === "b") draw(group, "rect", { x: cx - 5, y: cy - 5, width: 10, height: 10, class: "marker" });
  else draw(group, "circle", { cx, cy, r: 5.5, class: "marker" });
}

const inWords = ({ name, y: ys, mark }) => {
  const at = mark ?? ys.length - 1;
  return `${name.length === 1 ? `run ${name.toUpperCase()}` : name} at ${short(ys[at])}`;
};
