// The distribution of the bin of m + sigma N(0, 1) among K bins for every m, and the Fisher-Rao length of its path:
// sliders sigma and K.

const STEPS = 180; // places of the path, each cut into steps of at most sigma / 8

// P(N > z): a series of positive terms near 0, and beyond it a continued fraction, so that small tails keep their digits
function tail(z) {
  if (z < 0) return 1 - tail(-z);
  if (z === Infinity) return 0;
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  if (z < 3) {
    let [term, total] = [z, z];
    for (let k = 3; term > 1e-17 * total; k += 2) total += term *= (z * z) / k;
    return 0.5 - density * total;
  }
  let fraction = z;
  for (let k = 80; k > 0; k--) fraction = z + k / fraction;
  return density / fraction;
}

const edge = (k, K) => (k <= 0 ? -Infinity : k >= K ? Infinity : k / K);

// Of bin k: its probability, by the smaller tails
function mass(k, m, K, sigma) {
  const [low, high] = [(edge(k, K) - m) / sigma, (edge(k + 1, K) - m) / sigma];
  return high < 0 ? tail(-high) - tail(-low) : tail(low) - tail(high);
}

// sqrt of the Fisher information sum_k (dp_k/dm)^2 / p_k; bins more than twelve sigma away add less than exp(-72)
function speed(m, K, sigma) {
  const reach = Math.ceil(12 * sigma * K) + 1;
  const here = Math.floor(m * K);
  const density = (z) => Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  let information = 0;
  for (let k = Math.max(0, here - reach); k <= Math.min(K - 1, here + reach); k++) {
    const slope = density((edge(k, K) - m) / sigma) - density((edge(k + 1, K) - m) / sigma);
    const p = mass(k, m, K, sigma);
    if (p > 0) information += (slope * slope) / p;
  }
  return Math.sqrt(information) / sigma;
}

// Lengths from 0 to each of the places m = 0, 1/STEPS, .., 1, by the trapezoid rule
function path(K, sigma) {
  const parts = 1 + Math.floor(8 / STEPS / sigma);
  const lengths = [0];
  let before = speed(0, K, sigma);
  for (let step = 1; step <= STEPS; step++) {
    let total = 0;
    for (let part = 1; part <= parts; part++) {
      const now = speed((step - 1 + part / parts) / STEPS, K, sigma);
      total += (now + before) / 2;
      before = now;
    }
    lengths.push(lengths.at(-1) + total / STEPS / parts);
  }
  return lengths;
}

function compute([sigma, K]) {
  const [places, bins] = [STEPS + 1, K].map((count) => Array.from({ length: count }, (_, k) => k));
  const m = places.map((step) => step / STEPS);
  const lengths = path(K, sigma);
  const whole = lengths.at(-1);
  const most = Math.PI * (K - 1);
  const words = `length ${whole.toFixed(0)}<br>at most ${K - 1}π = ${most.toFixed(0)}, and 1/σ = ${(1 / sigma).toFixed(0)}`;
  return {
    data: [
      { type: "heatmap", x: m, y: bins.map((k) => (k + 0.5) / K), z: bins.map((k) => m.map((each) => mass(k, each, K, sigma))) },
      { type: "scatter", x: [0, 1], y: [0, whole] },
      { type: "scatter", x: m, y: lengths },
      { type: "scatter", x: [0.02], y: [1.1 * most], text: [words] },
    ],
    traces: [0, 1, 2, 3],
    layout: { yaxis2: { range: [0, 1.1 * most] } },
  };
}
