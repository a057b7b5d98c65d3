// What the cells of a maze can be coloured by: each colouring maps a state's number to a colour and has a legend.

/** The number that a share of the sorted numbers lies below. */
function quantile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

/** Every number of some arrays, thinned out to what a quantile needs, in order. */
function sample(arrays, most = 40000) {
  const total = arrays.reduce((sum, array) => sum + array.length, 0);
  const step = Math.max(1, Math.floor(total / most));
  const numbers = [];
  for (const array of arrays) for (let i = 0; i < array.length; i += step) numbers.push(array[i]);
  return Float64Array.from(numbers).sort();
}

function ticksOf(low, high) {
  const step = niceStep(high - low, 5);
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high + 1e-9 * step; at += step) ticks.push(Number(at.toPrecision(12)));
  return ticks;
}

/** By value. A bad policy can be worth far less than any good one: what lies below 2% of all numbers shares a colour. */
function valueColouring(model, traces, meaning) {
  const numbers = sample([model.values, ...traces.map((trace) => trace.values)]);
  const low = quantile(numbers, 0.02);
  const high = numbers[numbers.length - 1] > low ? numbers[numbers.length - 1] : low + 1;
  const share = (number) => (number - low) / (high - low);
  return {
    title: meaning.values,
    colour: (trace, at) => viridis(share(trace.values[at])),
    bar: viridis,
    ticks: ticksOf(low, high).map((number) => [share(number), short(number)]),
    clipped: share(numbers[0]) < -0.01 ? `the darkest also stands for less, down to ${short(numbers[0])}` : "",
  };
}

/** By distance to V*, or what there is instead of it, from zero; the farthest 2% of all share a colour. */
function distanceColouring(model, traces, meaning) {
  const states = model.values.length;
  const distance = (trace, at) => Math.abs(model.values[at % states] - trace.values[at]);
  const numbers = sample(traces.map((trace) => trace.values.map((_, at) => distance(trace, at))));
  const farthest = numbers[numbers.length - 1];
  const top = quantile(numbers, 0.98) || farthest || 1;
  return {
    title: `distance to ${meaning.target}`,
    colour: (trace, at) => cividis(distance(trace, at) / top),
    bar: cividis,
    ticks: ticksOf(0, top).map((number) => [number / top, short(number)]),
    clipped: farthest > 1.01 * top ? `the brightest also stands for more, up to ${short(farthest)}` : "",
  };
}

const MOST_NAMED = 10;

/** By depth: in the colours that depths have in every figure; if some are deeper, on a scale, by rank or by number. */
function depthColouring(model, traces) {
  const used = [...new Set(traces.flatMap((trace) => [...new Set(trace.depth)]))].sort((one, other) => one - other);
  const title = "depth looked ahead, in steps";
  if (used[used.length - 1] < DEPTHS.length) {
    const own = (depth) => channels(DEPTHS[depth]);
    return { title, clipped: "", colour: (trace, at) => own(trace.depth[at]), swatches: used.map((depth) => [css(own(depth)), String(depth)]) };
  }
  const last = Math.max(1, used.length - 1);
  const rank = new Map(used.map((depth, i) => [depth, i]));
  const span = Math.max(1, used[used.length - 1] - used[0]);
  const named = used.length <= MOST_NAMED;
  const share = named ? (depth) => rank.get(depth) / last : (depth) => (depth - used[0]) / span;
  const colouring = { title, colour: (trace, at) => cividis(share(trace.depth[at])), clipped: "" };
  if (named) return { ...colouring, swatches: used.map((depth) => [css(cividis(share(depth))), String(depth)]) };
  return { ...colouring, bar: cividis, ticks: ticksOf(used[0], used[used.length - 1]).map((at) => [share(at), String(at)]) };
}

/** By action, for models whose actions are no moves on the grid. */
function actionColouring(model, traces) {
  const used = [...new Set(traces.flatMap((trace) => [...new Set(trace.policy)]))].sort((one, other) => one - other);
  const colour = (action) => channels(CATEGORIES[action % CATEGORIES.length]);
  return {
    title: "action of the policy",
    colour: (trace, at) => colour(trace.policy[at]),
    swatches: used.map((action) => [css(colour(action)), actionName(model, action)]),
    clipped: used.length > CATEGORIES.length ? "colours repeat" : "",
  };
}

const COLOURINGS = { value: valueColouring, distance: distanceColouring, depth: depthColouring, action: actionColouring };

const actionName = (model, action) => model.action_names[action] ?? `action ${action}`;

/** Draw the legend of a colouring into an element: a colour bar with ticks, or one swatch for each thing. */
function drawLegend(element, colouring) {
  element.replaceChildren();
  const title = make("div", { class: "legend-title" }, colouring.title);
  element.append(title);
  if (colouring.swatches) {
    const list = make("div", { class: "swatches" });
    for (const [colour, text] of colouring.swatches) {
      list.append(make("span", { class: "swatch" }, make("i", { style: `background:${colour}` }), text));
    }
    element.append(list);
  } else {
    const stops = Array.from({ length: 11 }, (_, i) => css(colouring.bar(i / 10)));
    element.append(make("div", { class: "bar", style: `background:linear-gradient(to right, ${stops.join(", ")})` }));
    const ticks = make("div", { class: "bar-ticks" });
    for (const [share, text] of colouring.ticks) ticks.append(make("span", { style: `left:${100 * share}%` }, text));
    element.append(ticks);
  }
  if (colouring.clipped) element.append(make("div", { class: "legend-note" }, colouring.clipped));
}

/** An HTML element with attributes and children. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
