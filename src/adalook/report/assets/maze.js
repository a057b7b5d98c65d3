// A maze on a canvas: cells in the colours of a look, arrows, walls, and the places that matter.

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
function statesByCell(board) {
  const states = new Int32Array(board.rows * board.columns).fill(-1);
  for (let state = 0; state < board.values.length; state += 1) {
    const [row, column] = [board.cells[2 * state], board.cells[2 * state + 1]];
    if (row >= 0) states[row * board.columns + column] = state;
  }
  return states;
}

class Maze {
  /** @param {HTMLCanvasElement} canvas drawn to fill its width */
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
  }

  /** @param picture {board, trace, frame, look, arrows, cell: [row, column] | null} */
  draw(picture) {
    this.picture = picture;
    const { board } = picture;
    const width = this.canvas.parentElement.clientWidth;
    if (!width) return;
    const dots = window.devicePixelRatio || 1;
    // Whole device pixels per cell, so that no seams show between cells.
    this.size = Math.max(1, Math.floor((Math.min(width, 760) * dots) / Math.max(board.columns, board.rows * 0.6)));
    this.canvas.width = this.size * board.columns;
    this.canvas.height = this.size * board.rows;
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
    const { board } = this.picture;
    const row = Math.floor(((event.clientY - box.top) / box.height) * board.rows);
    const column = Math.floor(((event.clientX - box.left) / box.width) * board.columns);
    return row >= 0 && column >= 0 && row < board.rows && column < board.columns ? [row, column] : null;
  }

  #drawCells() {
    const { board, trace, frame, look } = this.picture;
    const style = getComputedStyle(this.canvas);
    const [wall, empty] = [style.getPropertyValue("--wall"), style.getPropertyValue("--empty")];
    const first = frame * board.values.length;
    this.shades = new Array(board.values.length);
    for (let cell = 0; cell < board.rows * board.columns; cell += 1) {
      const state = board.states[cell];
      if (state >= 0) this.shades[state] = look.colour(trace, first + state);
      this.pen.fillStyle = state >= 0 ? css(this.shades[state]) : board.walls[cell] ? wall : empty;
      this.pen.fillRect((cell % board.columns) * this.size, Math.floor(cell / board.columns) * this.size, this.size, this.size);
    }
  }

  #drawArrows() {
    const { board, trace, frame } = this.picture;
    const pen = this.pen, size = this.size, half = 0.31 * size, head = 0.2 * size;
    const first = frame * board.values.length;
    pen.lineWidth = Math.max(1, 0.09 * size);
    for (let state = 0; state < board.values.length; state += 1) {
      const [down, right] = board.moves[trace.policy[first + state]] ?? [0, 0];
      const row = board.cells[2 * state];
      if (row < 0 || (!down && !right) || board.covered.has(row * board.columns + board.cells[2 * state + 1])) continue;
      const x = (board.cells[2 * state + 1] + 0.5) * size, y = (row + 0.5) * size;
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
    const { board } = this.picture;
    for (const cell of board.goals) this.#drawMark(PLACES.goal, cell);
    for (const cell of board.traps) this.#drawMark(PLACES.trap, cell);
    if (board.start) this.#drawRing(board.start);
  }

  /** As large as a cell, but never too small to see, unless there are so many that they would overlap. */
  #markSize() {
    const { goals, traps } = this.picture.board;
    const least = goals.length + traps.length <= 60 ? 16 : 3;
    return Math.max(1.1 * this.size, least * (window.devicePixelRatio || 1));
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
