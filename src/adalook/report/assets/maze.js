// A maze on a canvas: cells in the colours of a colouring, arrows, walls, and the places that matter.

const LEAST_ARROW_CELL = 7; // CSS pixels: below this an arrow is a smudge
const PLACES = {
  goal: { colour: "#cc79a7", points: star() },
  trap: { colour: "#d55e00", points: cross() },
};

function star() {
  return Array.from({ length: 10 }, (_, i) => {
    const radius = i % 2 ? 0.2 : 0.46;
    const angle = (Math.PI * i) / 5 - Math.PI / 2;
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
}

function cross() {
  const thin = 0.13, far = 0.36;
  const arm = [[thin, 0], [far, far - thin], [far - thin, far], [0, thin]];
  const turns = [[1, 1], [-1, 1], [-1, -1], [1, -1]];
  return turns.flatMap(([x, y]) => (x * y > 0 ? arm : [...arm].reverse()).map(([px, py]) => [px * x, py * y]));
}

/** Which state lies in each cell: Int32Array(rows · columns), -1 where there is none. */
function statesByCell(model) {
  const states = new Int32Array(model.rows * model.columns).fill(-1);
  for (let state = 0; state < model.values.length; state += 1) {
    const [row, column] = [model.cells[2 * state], model.cells[2 * state + 1]];
    if (row >= 0) states[row * model.columns + column] = state;
  }
  return states;
}

class Maze {
  /** @param {HTMLCanvasElement} canvas drawn to fill its width */
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
  }

  /** @param picture {model, trace, frame, colouring, arrows, cell: [row, column] | null} */
  draw(picture) {
    this.picture = picture;
    const { model } = picture;
    const width = this.canvas.parentElement.clientWidth;
    if (!width) return;
    const dots = window.devicePixelRatio || 1;
    // Whole device pixels per cell, so that no seams show between cells.
    this.size = Math.max(1, Math.floor((Math.min(width, 760) * dots) / Math.max(model.columns, model.rows * 0.6)));
    this.canvas.width = this.size * model.columns;
    this.canvas.height = this.size * model.rows;
    this.canvas.style.width = `${this.canvas.width / dots}px`;
    this.canvas.style.height = `${this.canvas.height / dots}px`;
    this.#drawCells();
    if (picture.arrows && this.arrowsFit()) this.#drawArrows();
    this.#drawPlaces();
    if (picture.cell) this.#drawCursor(picture.cell);
  }

  arrowsFit() {
    return this.size / (window.devicePixelRatio || 1) >= LEAST_ARROW_CELL;
  }

  /** [row, column] under a pointer, or null. */
  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const { model } = this.picture;
    const row = Math.floor(((event.clientY - box.top) / box.height) * model.rows);
    const column = Math.floor(((event.clientX - box.left) / box.width) * model.columns);
    return row >= 0 && column >= 0 && row < model.rows && column < model.columns ? [row, column] : null;
  }

  #drawCells() {
    const { model, trace, frame, colouring } = this.picture;
    const style = getComputedStyle(this.canvas);
    const [wall, empty] = [style.getPropertyValue("--wall"), style.getPropertyValue("--empty")];
    const first = frame * model.values.length;
    this.shades = new Array(model.values.length);
    for (let cell = 0; cell < model.rows * model.columns; cell += 1) {
      const state = model.states[cell];
      if (state >= 0) this.shades[state] = colouring.colour(trace, first + state);
      this.pen.fillStyle = state >= 0 ? css(this.shades[state]) : model.walls[cell] ? wall : empty;
      this.pen.fillRect((cell % model.columns) * this.size, Math.floor(cell / model.columns) * this.size, this.size, this.size);
    }
  }

  #drawArrows() {
    const { model, trace, frame } = this.picture;
    const pen = this.pen, size = this.size, half = 0.31 * size, head = 0.2 * size;
    const first = frame * model.values.length;
    pen.lineWidth = Math.max(1, 0.09 * size);
    for (let state = 0; state < model.values.length; state += 1) {
      const [down, right] = model.moves[trace.policy[first + state]] ?? [0, 0];
      const row = model.cells[2 * state];
      if (row < 0 || (!down && !right) || model.covered.has(row * model.columns + model.cells[2 * state + 1])) continue;
      const x = (model.cells[2 * state + 1] + 0.5) * size, y = (row + 0.5) * size;
      const length = Math.hypot(down, right), dx = right / length, dy = down / length;
      pen.strokeStyle = pen.fillStyle = isBright(this.shades[state]) ? "#1a1a1a" : "#ffffff";
      pen.beginPath();
      pen.moveTo(x - half * dx, y - half * dy);
      pen.lineTo(x + (half - head) * dx, y + (half - head) * dy);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(x + half * dx, y + half * dy);
      pen.lineTo(x + (half - 1.3 * head) * dx - head * dy, y + (half - 1.3 * head) * dy + head * dx);
      pen.lineTo(x + (half - 1.3 * head) * dx + head * dy, y + (half - 1.3 * head) * dy - head * dx);
      pen.fill();
    }
  }

  #drawPlaces() {
    const { model } = this.picture;
    for (const cell of model.goals) this.#drawMark(PLACES.goal, cell);
    for (const cell of model.traps) this.#drawMark(PLACES.trap, cell);
    if (model.start) this.#drawRing(model.start);
  }

  /** So large that a mark and its outline fill a cell, but never too small to see, unless there are so many that they would overlap. */
  #markSize() {
    const { goals, traps } = this.picture.model;
    const least = goals.length + traps.length <= 60 ? 16 : 3;
    return Math.max(0.9 * this.size, least * (window.devicePixelRatio || 1));
  }

  /** Where to draw a mark that reaches so far: the middle of its cell, or as near as it is whole. */
  #centre([row, column], reach) {
    const inside = (at, length) => Math.max(reach, Math.min(length - reach, at));
    return [inside((column + 0.5) * this.size, this.canvas.width), inside((row + 0.5) * this.size, this.canvas.height)];
  }

  #drawMark({ colour, points }, [row, column]) {
    const pen = this.pen, size = this.#markSize();
    const [x, y] = this.#centre([row, column], 0.54 * size + 1);
    pen.beginPath();
    for (const [right, down] of points) pen.lineTo(x + right * size, y + down * size);
    pen.closePath();
    pen.lineJoin = "round";
    pen.strokeStyle = "#ffffff";
    pen.lineWidth = 0.16 * size;
    pen.stroke();
    pen.strokeStyle = "#000000";
    pen.lineWidth = 0.07 * size;
    pen.stroke();
    pen.fillStyle = colour;
    pen.fill();
  }

  #drawRing([row, column]) {
    const pen = this.pen, size = this.#markSize();
    const [x, y] = this.#centre([row, column], 0.52 * size + 1);
    for (const [colour, width] of [["#000000", 0.2], ["#ffffff", 0.1]]) {
      pen.beginPath();
      pen.arc(x, y, 0.42 * size, 0, 2 * Math.PI);
      pen.strokeStyle = colour;
      pen.lineWidth = width * size;
      pen.stroke();
    }
  }

  #drawCursor([row, column]) {
    const pen = this.pen, dots = window.devicePixelRatio || 1;
    for (const [colour, width] of [["#000000", 4], ["#ffffff", 2]]) {
      pen.strokeStyle = colour;
      pen.lineWidth = width * dots;
      pen.strokeRect(column * this.size, row * this.size, this.size, this.size);
    }
  }
}
