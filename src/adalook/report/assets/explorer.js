// The explorer: two runs on one maze, side by side, moved through their iterations together.

const PLAY_MILLISECONDS = { whole: 9000, least: 40, most: 700 }; // of the whole run; and of one frame

class Explorer {
  constructor(root, data) {
    this.root = root;
    this.runs = new Runs(data);
    this.alone = this.runs.runs.length === 1;
    this.mazes = {};
    this.charts = {};
    this.timer = null;
    this.turn = 0;
    this.pinned = ""; // the cell that stays when the pointer leaves
    for (const side of ["a", "b"]) this.mazes[side] = new Maze(this.part(`canvas-${side}`));
    this.state = this.#defaults();
    this.#readHash();
    this.#fillControls();
    this.#listen();
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  sides() {
    return this.alone ? ["a"] : ["a", "b"];
  }

  // What is looked at -------------------------------------------------------------------------------------------------

  #defaults() {
    const model = this.runs.models[0].name;
    const methods = this.runs.on(model).map((run) => run.method);
    const first = methods[0];
    const second = methods.find((method) => method.startsWith("wlpi/")) ?? methods[methods.length - 1];
    // Where the faster of two runs has arrived and the other has not, or where a single one has.
    const shown = this.runs.on(model).filter((run) => this.alone || [first, second].includes(run.method));
    const t = Math.min(...shown.map((run) => run.frames.length)) - 1;
    return { seed: model, a: first, b: second, t, colour: "value", arrows: 1, count: CONVENTIONS[0], over: "iterations", cell: "" };
  }

  #readHash() {
    if (!location.hash.includes("=")) return false;
    const wanted = new URLSearchParams(location.hash.slice(1));
    for (const [name, text] of wanted) {
      if (Object.hasOwn(this.state, name)) this.state[name] = typeof this.state[name] === "number" ? Number(text) || 0 : text;
    }
    const methods = this.runs.on(this.state.seed).map((run) => run.method);
    const defaults = this.#defaults();
    if (!methods.length) this.state.seed = defaults.seed;
    for (const side of ["a", "b"]) if (!methods.includes(this.state[side])) this.state[side] = defaults[side];
    if (!Object.hasOwn(COLOURINGS, this.state.colour)) this.state.colour = defaults.colour;
    if (!CONVENTIONS.includes(this.state.count)) this.state.count = defaults.count;
    if (!["iterations", "queries"].includes(this.state.over)) this.state.over = defaults.over;
    this.pinned = this.state.cell;
    return true;
  }

  #writeHash() {
    const words = Object.entries(this.state).filter(([, value]) => value !== "");
    history.replaceState(null, "", `#${new URLSearchParams(words)}`);
  }

  /** Change some of the state and show it; `settle` is false for what only a passing pointer asked for. */
  change(changes, settle = true) {
    Object.assign(this.state, changes);
    if (settle) this.#writeHash();
    return this.show();
  }

  run(side) {
    const all = this.runs.on(this.state.seed);
    return all.find((run) => run.method === this.state[side]) ?? all[0];
  }

  frames() {
    return Math.max(...this.sides().map((side) => this.run(side).frames.length));
  }

  /** The frame of a run at the slider's place: a run that has ended stays at its end. */
  frame(side) {
    return Math.min(this.state.t, this.run(side).frames.length - 1);
  }

  // Showing it --------------------------------------------------------------------------------------------------------

  async show() {
    const turn = (this.turn += 1);
    const model = await this.runs.model(this.state.seed);
    const traces = {};
    for (const side of this.sides()) traces[side] = await this.runs.trace(this.run(side));
    if (turn !== this.turn) return; // something newer was asked for meanwhile
    this.model = model;
    this.state.cell = isInside(model, this.state.cell) ? this.state.cell : "";
    this.state.t = Math.min(Math.max(0, Math.round(this.state.t)), this.frames() - 1);
    const colouring = this.#colouring(model, traces);
    for (const side of this.sides()) this.#showMaze(side, model, traces[side], colouring);
    this.#showCharts();
    this.#showControls(model);
    this.root.dataset.ready = String(turn);
  }

  #colouring(model, traces) {
    const key = [this.state.colour, this.state.seed, this.state.a, this.state.b].join("|");
    if (this.colouringKey !== key) {
      this.colouringKey = key;
      this.colouring = COLOURINGS[this.state.colour](model, Object.values(traces), this.runs.meaning);
      drawLegend(this.part("legend"), this.colouring);
    }
    return this.colouring;
  }

  #showMaze(side, model, trace, colouring) {
    const run = this.run(side), frame = this.frame(side), entry = run.frames[frame];
    const cell = this.state.cell ? this.state.cell.split(",").map(Number) : null;
    this.mazes[side].draw({ model, trace, frame, colouring, arrows: Boolean(this.state.arrows), cell });
    const returned = this.#isReturned(run, frame);
    const numbers = {
      iteration: run.numbers[entry] + this.#standing(run, frame),
      prior: priorInWords(run.prior, this.state.count),
      distance: returned ? "–" : short(run.distance[entry]),
      queries: whole(cumulative(run, this.state.count)?.[entry] ?? null),
      changed: returned ? "–" : whole(run.changed[entry]),
      depth: returned ? "–" : whole(run.max_depth[entry]),
    };
    for (const [name, text] of Object.entries(numbers)) this.part(`${name}-${side}`).textContent = text;
    this.part(`title-${side}`).textContent = this.alone ? run.label : `${side.toUpperCase()}: ${run.label}`;
    this.#showCell(side, model, trace, frame, cell);
  }

  /** The policy that was returned, if no pass started from it: it has no distance, and no improvement follows. */
  #isReturned(run, frame) {
    return run.returned && frame === run.frames.length - 1;
  }

  /** How a run stands at a frame, to be read after the iteration's number. */
  #standing(run, frame) {
    const status = run.status.toLowerCase().replaceAll("_", " ");
    if (this.#isReturned(run, frame)) return `, the policy returned: ${status}`;
    return frame === run.frames.length - 1 ? `, its last: ${status}` : ` of ${run.numbers.at(-1)}`;
  }

  #showCell(side, model, trace, frame, cell) {
    const state = cell ? model.states[cell[0] * model.columns + cell[1]] : -1;
    const readout = this.part(`cell-${side}`);
    if (!cell || state === undefined || state < 0) {
      readout.textContent = cell ? this.#emptyCell(model, cell) : "Point at a cell, tap it, or use the arrow keys on the maze, to read its numbers.";
      return;
    }
    const at = frame * model.values.length + state;
    const { optimal, distance } = this.runs.meaning;
    const returned = this.#isReturned(this.run(side), frame);
    const numbers = {
      state: String(state),
      cell: `row ${cell[0]}, column ${cell[1]}`,
      value: short(trace.values[at]),
      ...(optimal ? { "V*": short(model.values[state]) } : {}),
      ...(returned ? {} : { [distance]: short(Math.abs(model.values[state] - trace.values[at])), depth: String(trace.depth[at]) }),
      action: actionName(model, trace.policy[at]),
    };
    const list = make("dl", {});
    for (const [name, text] of Object.entries(numbers)) {
      list.append(make("div", {}, make("dt", {}, name), make("dd", { "data-field": name }, text)));
    }
    readout.replaceChildren(list);
  }

  #emptyCell(model, [row, column]) {
    const here = ([r, c]) => r === row && c === column;
    const kind = model.goals.some(here) ? "a goal: entering it pays and moves on, so it is no state" : model.walls[row * model.columns + column] ? "a wall" : "no state";
    return `Row ${row}, column ${column} is ${kind}.`;
  }

  #showCharts() {
    const overQueries = this.state.over === "queries";
    const lines = this.sides().map((side) => {
      const run = this.run(side);
      const queries = cumulative(run, this.state.count);
      return { name: side, run, queries, mark: run.frames[this.frame(side)] };
    });
    const across = overQueries && lines.every((line) => line.queries) ? "queries so far" : "iteration";
    this.charts.distance = drawChart(this.part("chart-distance"), {
      lines: lines.map((line) => ({ ...line, x: across === "iteration" ? line.run.numbers : line.queries, y: line.run.distance })),
      axis: logAxis, across, up: `largest distance to ${this.runs.meaning.target}`,
    });
    const counted = lines.filter((line) => line.queries);
    this.charts.queries = drawChart(this.part("chart-queries"), {
      lines: counted.map((line) => ({ ...line, x: line.run.numbers, y: line.queries })),
      axis: countAxis, across: "iteration", up: "queries so far",
    });
    this.part("uncounted").hidden = counted.length === lines.length;
  }

  #showControls(model) {
    const { state } = this;
    const last = this.frames() - 1;
    for (const name of ["seed", "a", "b", "colour", "count", "over"]) this.part(name).value = state[name];
    this.part("arrows").checked = Boolean(state.arrows);
    const fit = this.mazes.a.arrowsFit() && model.moves.length > 0;
    this.part("arrows").disabled = !fit;
    this.part("arrows-note").textContent = fit ? "" : model.moves.length ? "(cells too small)" : "(actions are no moves)";
    this.part("slider").max = last;
    this.part("slider").value = state.t;
    this.part("slider").setAttribute("aria-valuetext", `iteration ${this.#passAt(state.t)} of ${this.#passAt(last)}`);
    this.part("now").textContent = `${this.#passAt(state.t)} of ${this.#passAt(last)}`;
    for (const key of model.places) this.part(`place-${key}`).hidden = false;
  }

  /** The pass at a place of the slider, by the run that lasts longer. */
  #passAt(place) {
    const [run] = this.sides().map((side) => this.run(side)).sort((one, other) => other.frames.length - one.frames.length);
    return run.numbers[run.frames[Math.min(place, run.frames.length - 1)]];
  }

  // Controls ----------------------------------------------------------------------------------------------------------

  #fillControls() {
    for (const model of this.runs.models) this.part("seed").append(make("option", { value: model.name }, model.name));
    this.#fillMethods();
    for (const convention of CONVENTIONS) {
      const option = make("option", { value: convention }, convention.replace("+", " + "));
      option.disabled = this.runs.runs.every((run) => !cumulative(run, convention));
      this.part("count").append(option);
    }
    if (this.runs.runs.every((run) => !cumulative(run, this.state.count))) this.state.count = "shared+simulated";
    this.root.classList.toggle("alone", this.alone);
    this.part("slider").disabled = this.frames() < 2;
    this.part("play").disabled = this.frames() < 2;
  }

  #fillMethods() {
    const groups = groupBy(this.runs.on(this.state.seed));
    for (const side of ["a", "b"]) {
      const select = this.part(side);
      select.replaceChildren();
      for (const [group, runs] of groups) {
        const options = runs.map((run) => make("option", { value: run.method }, run.label));
        select.append(make("optgroup", { label: group }, ...options));
      }
    }
  }

  #listen() {
    const choose = (name) => this.part(name).addEventListener("change", (event) => this.change({ [name]: event.target.value }));
    ["a", "b", "colour", "count", "over"].forEach(choose);
    this.part("seed").addEventListener("change", (event) => {
      this.state.seed = event.target.value;
      this.#fillMethods();
      this.pinned = "";
      this.change({ cell: "" });
    });
    this.part("arrows").addEventListener("change", (event) => this.change({ arrows: Number(event.target.checked) }));
    this.part("slider").addEventListener("input", (event) => this.go(Number(event.target.value)));
    this.part("play").addEventListener("click", () => this.toggle());
    this.part("back").addEventListener("click", () => this.go(this.state.t - 1));
    this.part("forth").addEventListener("click", () => this.go(this.state.t + 1));
    for (const side of this.sides()) this.#listenToMaze(this.mazes[side]);
    for (const name of ["distance", "queries"]) {
      this.part(`chart-${name}`).addEventListener("click", (event) => this.#jump(name, event));
    }
    this.root.addEventListener("keydown", (event) => this.#onKey(event));
    window.addEventListener("hashchange", () => {
      if (!this.#readHash()) return;
      this.#fillMethods();
      this.show();
    });
    new ResizeObserver(() => this.model && this.show()).observe(this.part("canvas-a").parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.show());
  }

  #listenToMaze(maze) {
    const { canvas } = maze;
    const at = (event) => maze.cellAt(event)?.join(",") ?? "";
    canvas.addEventListener("pointermove", (event) => {
      const cell = at(event);
      if (cell !== this.state.cell) this.change({ cell }, false);
    });
    canvas.addEventListener("click", (event) => {
      this.pinned = at(event);
      this.change({ cell: this.pinned });
    });
    canvas.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.change({ cell: this.pinned }, false);
    });
    canvas.addEventListener("keydown", (event) => this.#moveCell(event));
  }

  #moveCell(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const { rows, columns, start } = this.model;
    const [row, column] = this.state.cell ? this.state.cell.split(",").map(Number) : start ?? [0, 0];
    const next = this.state.cell ? [row + step[0], column + step[1]] : [row, column];
    this.pinned = `${Math.min(rows - 1, Math.max(0, next[0]))},${Math.min(columns - 1, Math.max(0, next[1]))}`;
    this.change({ cell: this.pinned });
  }

  #onKey(event) {
    const field = event.target.closest("select, input, button, a, summary");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      " ": () => this.toggle(),
      ArrowLeft: () => this.go(this.state.t - 1),
      ArrowRight: () => this.go(this.state.t + 1),
      ",": () => this.go(this.state.t - 1),
      ".": () => this.go(this.state.t + 1),
      Home: () => this.go(0),
      End: () => this.go(this.frames() - 1),
    }[event.key];
    const free = !field || (field === this.part("slider") && event.key === " ") || [",", "."].includes(event.key);
    if (!act || !free) return;
    event.preventDefault();
    act();
  }

  #jump(name, event) {
    const box = event.currentTarget.getBoundingClientRect();
    const place = this.charts[name].position(((event.clientX - box.left) / box.width) * CHART.width);
    const side = this.sides().sort((one, other) => this.run(other).frames.length - this.run(one).frames.length)[0];
    const run = this.run(side);
    const x = name === "distance" && this.state.over === "queries" ? cumulative(run, this.state.count) : run.numbers;
    const distance = (frame) => Math.abs(x[run.frames[frame]] - place);
    let nearest = 0;
    for (let frame = 1; frame < run.frames.length; frame += 1) if (distance(frame) < distance(nearest)) nearest = frame;
    this.go(nearest);
  }

  /** Go to a place of the slider, and stop playing. */
  go(place) {
    this.stop();
    return this.change({ t: Math.min(Math.max(0, place), this.frames() - 1) });
  }

  toggle() {
    if (this.timer !== null) this.stop();
    else this.play();
  }

  play() {
    const { whole: all, least, most } = PLAY_MILLISECONDS;
    if (this.state.t >= this.frames() - 1) this.change({ t: 0 });
    const pause = Math.min(most, Math.max(least, all / this.frames()));
    this.timer = setInterval(() => {
      if (this.state.t >= this.frames() - 1) this.stop();
      else this.change({ t: this.state.t + 1 });
    }, pause);
    this.#showPlaying(true);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.#showPlaying(false);
  }

  #showPlaying(playing) {
    const button = this.part("play");
    button.textContent = playing ? "Pause" : "Play";
    button.setAttribute("aria-pressed", String(playing));
    for (const side of ["a", "b"]) this.part(`cell-${side}`).setAttribute("aria-live", playing ? "off" : "polite");
  }
}

function isInside(model, cell) {
  const [row, column] = /^\d+,\d+$/.test(cell) ? cell.split(",").map(Number) : [Infinity, Infinity];
  return row < model.rows && column < model.columns;
}

function groupBy(runs) {
  const groups = new Map();
  for (const run of runs) groups.set(run.group, [...(groups.get(run.group) ?? []), run]);
  return groups;
}

function startExplorer() {
  const root = document.querySelector("#explorer .explorer");
  if (!root) return;
  const data = JSON.parse(document.getElementById("explorer-data").textContent);
  const explorer = new Explorer(root, data);
  explorer.show().catch((error) => {
    root.prepend(make("p", { class: "problem", role: "alert" }, `The explorer cannot start: ${error.message}. It needs a browser of 2023 or later.`));
    throw error;
  });
  if (location.hash.includes("=")) root.scrollIntoView();
}

startExplorer();
