// The data behind the explorer: models (mazes) and runs on them. Traces are unpacked when they are first looked at.

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
    this.models = data.models;
    this.runs = data.runs;
    this.meaning = data.meaning; // what values are, and what distances are measured to
  }

  async model(name) {
    const model = this.models.find((one) => one.name === name) ?? this.models[0];
    if (!model.values) {
      Object.assign(model, await unpack(model.packed));
      model.states = statesByCell(model);
      model.covered = new Set([...model.goals, ...model.traps].map(([row, column]) => row * model.columns + column));
    }
    return model;
  }

  on(model) {
    return this.runs.filter((run) => run.model === model);
  }

  async trace(run) {
    run.trace ??= await unpack(run.packed);
    return run.trace;
  }
}
