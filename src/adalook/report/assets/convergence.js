// The convergence of one run, for models that have no layout to draw and as a summary for those that have one.

function startConvergence() {
  const root = document.querySelector("#convergence");
  if (!root) return;
  const run = JSON.parse(document.getElementById("convergence-data").textContent);
  const convention = CONVENTIONS.find((one) => one.endsWith("simulated") && cumulative(run, one));
  const chart = (name, y, axis, up) => {
    const svg = root.querySelector(`[data-chart="${name}"]`);
    if (svg) drawChart(svg, { lines: [{ name: "a", x: run.numbers, y, mark: null }], axis, across: "pass", up });
  };
  chart("loss", run.policy_loss, logAxis, "certified loss");
  chart("distance", run.distance, logAxis, "largest distance to the returned values");
  chart("changed", run.changed, countAxis, "states whose action changed");
  chart("depth", run.max_depth, countAxis, "deepest lookahead");
  chart("queries", cumulative(run, convention), countAxis, "queries so far");
}

startConvergence();
