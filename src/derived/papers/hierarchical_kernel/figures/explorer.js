// Mixed scores of a string, and the attention of one query: sliders for the weights of levels 1, 2, .. against level 0,
// which weighs 1, and for the query. given: tables, the scores of each level, whose row i >> l holds token i.

function compute(at, { tables }) {
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
  return {
    data: [
      { type: "heatmap", z },
      { type: "bar", y: attention },
      { type: "scatter", y: [-0.5, -0.5, 0.5, 0.5, -0.5].map((edge) => query + edge) },
    ],
    traces: [0, 1, 2],
    layout: { yaxis3: { range: [0, Math.max(0.25, 1.05 * Math.max(...attention))] } },
  };
}
