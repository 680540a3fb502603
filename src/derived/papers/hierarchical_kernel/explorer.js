// Mixed scores of a string, and the attention of one query: sliders for the weights of levels 1, 2, .. against level 0,
// which weighs 1, and for the query. given: tables, the scores of each level, whose row i >> l holds token i, and opens,
// the place where the innermost list around each token begins.

function compute(at, { tables, opens }) {
  const weights = [1, ...at.slice(0, -1)];
  const query = at.at(-1);
  const whole = weights.reduce((total, each) => total + each, 0);
  const alpha = weights.map((each) => each / whole);
  const places = tables[0].map((_, i) => i);
  const score = (i, j) => alpha.reduce((total, share, level) => total + share * tables[level][i >> level][j >> level], 0);
  const z = places.map((i) => places.map((j) => (j <= i ? score(i, j) : null)));
  const seen = z[query].slice(0, query + 1);
  const most = Math.max(...seen);
  const raised = seen.map((each) => Math.exp(each - most));
  const total = raised.reduce((sum, each) => sum + each, 0);
  const attention = places.map((j) => (j <= query ? raised[j] / total : 0));
  const own = attention.map((each, j) => (j >= opens[query] ? each : 0));
  const stays = own.reduce((sum, each) => sum + each, 0);
  const [low, high] = [query - 0.5, query + 0.5];
  return {
    data: [
      { type: "heatmap", z },
      { type: "bar", y: own },
      { type: "bar", y: attention.map((each, j) => each - own[j]) },
      { type: "scatter", x: [-0.5, high, high, -0.5, -0.5], y: [low, low, high, high, low] },
      { type: "scatter", text: [`${stays.toFixed(2)} of the attention stays<br>in the query's own list`] },
    ],
    traces: [0, 1, 2, 3, 4],
    layout: { yaxis2: { range: [0, Math.max(0.25, 1.05 * Math.max(...attention))] } },
  };
}
