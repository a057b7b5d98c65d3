// The data behind the explorer: boards (mazes) and runs on them. Traces are unpacked when they are first looked at.

const CONVENTIONS = ["root+simulated", "tree+simulated", "shared+simulated", "root+exact", "tree+exact", "shared+exact"];

/** Queries spent by the end of each pass, the prior's first if they count; null where they were not counted. */
function cumulative(run, convention) {
  const [improvement, evaluation] = convention.split("+");
  const steps = run.queries.improvement[improvement];
  if (!steps) return null;
  let sum = run.prior?.counted ? priorQueries(run.prior, convention) : 0;
  return steps.map((step, i) => (sum += step + run.queries.evaluation[evaluation][i]));
}

function priorQueries(prior, convention) {
  const [improvement, evaluation] = convention.split("+");
  return prior.queries.improvement[improvement] + prior.queries.evaluation[evaluation];
}

function priorInWords(prior, convention) {
  if (!prior) return "none";
  const cost = whole(priorQueries(prior, convention));
  return `${prior.kind.replaceAll("_", " ")}, ${prior.counted ? `${cost} queries, counted` : "taken as given"}`;
}

class Runs {
  constructor(data) {
    this.boards = data.boards;
    this.runs = data.runs;
    this.meaning = data.meaning; // what values are, and what distances are measured to
  }

  async board(name) {
    const board = this.boards.find((one) => one.name === name) ?? this.boards[0];
    if (!board.values) {
      Object.assign(board, await unpack(board.packed));
      board.states = statesByCell(board);
      board.covered = new Set([...board.goals, ...board.traps].map(([row, column]) => row * board.columns + column));
    }
    return board;
  }

  on(board) {
    return this.runs.filter((run) => run.board === board);
  }

  async trace(run) {
    run.trace ??= await unpack(run.packed);
    return run.trace;
  }
}
