// One position under Cactus, from its closed forms: sliders delta, temperature, noise.
// given: logits of the verifier, and push, what one unit of noise adds to the draft's.

const sum = (values) => values.reduce((total, value) => total + value, 0);

function softmax(logits) {
  const most = Math.max(...logits);
  const weights = logits.map((each) => Math.exp(each - most));
  const total = sum(weights);
  return weights.map((each) => each / total);
}

// min(p_y, gamma_y) + sum_n (p_n - gamma_n)_+ r^(n)_y / Z_n, r^(n) = (s_n q - p)_+ with s_n = (1 - gamma_n) / (1 - q_n)
function emitted(p, q, gamma) {
  const law = p.map((each, y) => Math.min(each, gamma[y]));
  p.forEach((drafted, n) => {
    const lost = Math.max(drafted - gamma[n], 0);
    const scale = (1 - gamma[n]) / (1 - q[n]);
    const recovery = p.map((each, y) => Math.max(scale * q[y] - each, 0));
    const whole = sum(recovery);
    if (whole > 0) recovery.forEach((weight, y) => (law[y] += (lost * weight) / whole));
    else law[n] += lost;
  });
  return law;
}

const kl = (h, q) => sum(h.map((each, y) => (each > 0 ? each * Math.log(each / q[y]) : 0)));

function compute([delta, temperature, noise], { logits, push }) {
  const q = softmax(logits.map((each) => each / temperature));
  const p = softmax(logits.map((each, y) => (each + noise * push[y]) / temperature));
  const gamma = q.map((each) => Math.min(each + Math.sqrt(2 * delta * each * (1 - each)), 1));
  const law = emitted(p, q, gamma);
  const kept = sum(p.map((each, y) => Math.min(each, gamma[y])));
  const exact = sum(p.map((each, y) => Math.min(each, q[y])));
  const tv = sum(law.map((each, y) => Math.abs(each - q[y]))) / 2;
  const lengths = [kept, exact, tv, 0];
  const far = `${Math.abs(kl(law, q)).toFixed(3)} nats, the draft ${kl(p, q).toFixed(3)}`; // rounding may be below 0
  const words = [...lengths.slice(0, 3).map((each) => each.toFixed(3)), far];
  return {
    data: [...[q, p, law].map((y) => ({ type: "bar", y })), { type: "bar", x: lengths, base: [0, 0, exact, 0], text: words }],
    traces: [0, 1, 2, 3],
  };
}
