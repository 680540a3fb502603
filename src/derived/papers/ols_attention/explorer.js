// Softmax attention as regression on the line: slider beta.
// given: X and Y, the data, and places, where predictions are drawn.

const sum = (values) => values.reduce((total, value) => total + value, 0);
const mean = (values) => sum(values) / values.length;

function compute([beta], { X, Y, places }) {
  const centre = mean(X);
  const keys = X.map((x) => x - centre);
  const scale = (beta * X.length) / sum(keys.map((k) => k * k)); // beta q k with whitened q and k
  const level = mean(Y);
  const curves = { softmax: [], readOut: [] };
  for (const x of places) {
    const scores = keys.map((k) => scale * (x - centre) * k);
    const most = Math.max(...scores);
    const weights = scores.map((score) => Math.exp(score - most));
    const total = sum(weights);
    curves.softmax.push(sum(weights.map((w, j) => w * Y[j])) / total);
    // ybar + (softmax - ybar) / beta; since the y_j - ybar sum to 0, e^a - 1 may stand for e^a, and nothing cancels
    const moved = scores.map((score, j) => Math.expm1(score - most) * (Y[j] - level));
    curves.readOut.push(level + sum(moved) / (beta * total));
  }
  const line = (y) => ({ type: "scatter", x: places, y });
  return { data: [line(curves.readOut), line(curves.softmax)], traces: [0, 1] };
}
