// The recurrences of (q, p) and, backward, of (J, K), block by block, with uniform attention: sliders alpha, sigma_OV,
// sigma_21, tokens n and depth B. given: q0 and p0.

const norms = {
  layernorm: () => (q, p) => ({ qTilde: 1, pTilde: p / q, qHat: 1 / q, pHat: 1 / q }),
  erf: (alpha) => (q, p) => {
    const [x, y] = [2 * alpha * alpha * q, 2 * alpha * alpha * p];
    const scale = (4 * alpha * alpha) / Math.PI;
    return {
      qTilde: (2 / Math.PI) * Math.asin(x / (1 + x)), // the arcsine law
      pTilde: (2 / Math.PI) * Math.asin(y / (1 + x)),
      qHat: scale / Math.sqrt(1 + 2 * x),
      pHat: scale / Math.sqrt((1 + x - y) * (1 + x + y)),
    };
  },
};

// One block at (q, p): the next (q, p), and M_attention diag(M_mlp) - I, whose small entries keep their digits.
function block(moments, [q, p], a, s, n) {
  const attended = moments(q, p);
  const [query, pair] = [a * attended.qHat, a * attended.pHat];
  const mixed = a * (attended.pTilde + (attended.qTilde - attended.pTilde) / n);
  [q, p] = [q + mixed, p + mixed];
  const { qTilde, pTilde, qHat, pHat } = moments(q, p);
  const rho = Math.min(Math.max(pTilde / qTilde, -1), 1);
  const both = (Math.PI - Math.acos(rho)) / (2 * Math.PI); // kappa'
  const kappa = rho * both + Math.sqrt(1 - rho * rho) / (2 * Math.PI);
  const [gainJ, gainK] = [(s / 2) * qHat, s * both * pHat];
  const step = [
    (query / n) * (1 + gainJ) + gainJ,
    query * (1 - 1 / n) * (1 + gainK),
    (pair / n) * (1 + gainJ),
    pair * (1 - 1 / n) * (1 + gainK) + gainK,
  ];
  return { next: [q + (s / 2) * qTilde, p + s * qTilde * kappa], step };
}

function curves(moments, start, a, s, n, depth) {
  const path = [start];
  const steps = [];
  for (let b = 0; b < depth; b++) {
    const { next, step } = block(moments, path[b], a, s, n);
    path.push(next);
    steps.push(step);
  }
  const logJ = [0]; // ln J^{B,b}, from b = B down; ratio is K / J
  let ratio = 0;
  for (const [m11, m12, m21, m22] of steps.reverse()) {
    const growth = m11 + m12 * ratio;
    logJ.unshift(logJ[0] + Math.log1p(growth));
    ratio = (m21 + (1 + m22) * ratio) / (1 + growth);
  }
  return { q: path.map(([q]) => q), rho: path.map(([q, p]) => p / q), logJ };
}

function compute([alpha, attention, mlp, n, depth], { q0, p0 }) {
  const found = ["layernorm", "erf"].map((norm) => curves(norms[norm](alpha), [q0, p0], attention ** 2, mlp ** 2, n, depth));
  const x = Array.from({ length: depth + 1 }, (_, b) => b);
  const panels = ["q", "rho", "logJ"];
  const top = (name) => 1.05 * Math.max(...found.flatMap((each) => each[name]));
  const layout = { yaxis: { range: [0, top("q")] }, yaxis2: { range: [0, 1.03] }, yaxis3: { range: [0, top("logJ")] } };
  for (const number of ["", 2, 3]) layout[`xaxis${number}`] = { range: [0, depth] };
  const data = panels.flatMap((name) => found.map((each) => ({ type: "scatter", x, y: each[name] })));
  return { data, layout, traces: data.map((_, number) => number) };
}
