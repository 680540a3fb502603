// Three equally likely worlds in the simplex of three tokens: where the third stands, along and away, and a price beta.
// given: fixed (the laws of the other two), codes in the order of the lines (the finest first, the coarsest last), their
// names and shades, corners of the triangle, colours of cells, and top, the largest price drawn.

const TIE = 1e-12; // nats: values that differ by less are equal
const entropy = (shares) => shares.reduce((total, share) => total - (share > 0 ? share * Math.log(share) : 0), 0);

// H of the cell, and the excess of its reader over one who knows the world, in nats
function measures(code, laws) {
  const cells = [0, 1, 2].map((cell) => [0, 1, 2].filter((world) => Number(code[world]) === cell)).filter((held) => held.length);
  let excess = 0;
  for (const held of cells) {
    const mixture = [0, 1, 2].map((token) => held.reduce((total, world) => total + laws[world][token], 0) / held.length);
    for (const world of held) excess += laws[world].reduce((total, p, y) => total + (p > 0 ? p * Math.log(p / mixture[y]) : 0), 0) / 3;
  }
  return { excess, complexity: entropy(cells.map((held) => held.length / 3)) };
}

// Places for labels, in their order, at least so far apart: isotonic regression by pooling
function apart(values, least) {
  const order = values.map((_, k) => k).sort((i, j) => values[i] - values[j]);
  const pools = [];
  order.forEach((k, rank) => {
    pools.push({ total: values[k] - rank * least, held: [k] });
    while (pools.length > 1 && pools.at(-2).total / pools.at(-2).held.length >= pools.at(-1).total / pools.at(-1).held.length) {
      const { total, held } = pools.pop();
      pools.at(-1).total += total;
      pools.at(-1).held.push(...held);
    }
  });
  const places = [];
  let rank = 0;
  for (const { total, held } of pools) for (const k of held) places[k] = total / held.length + least * rank++;
  return places;
}

function compute([along, height, beta], { fixed, codes, names, shades, corners, colours, top }) {
  const third = fixed[0].map((p, y) => (1 - height) * ((1 - along) * p + along * fixed[1][y]) + (y === 2 ? height : 0));
  const laws = [...fixed, third];
  const places = laws.map((law) => [0, 1].map((axis) => law.reduce((total, p, y) => total + p * corners[y][axis], 0)));
  const points = codes.map((code) => measures(code, laws));
  const saved = points.map(({ complexity }) => complexity - points[0].complexity);
  const at = (price) => points.map(({ excess }, k) => excess + price * saved[k]);
  const now = at(beta);
  // The finest and the coarsest are one step from each of the three between them, and those only from these two.
  const near = (k) => (k === 0 || k === 4 ? [1, 2, 3] : [0, 4]);
  const isLocal = (k) => now[k] <= Math.min(...near(k).map((j) => now[j])) + TIE;
  const least = Math.min(...now);
  const best = now.findLastIndex((value) => value <= least + TIE); // of equals the coarser
  const stuck = [0, 1, 2, 3, 4].filter((k) => isLocal(k) && now[k] > least + TIE);
  const held = [0, 1, 2, 3, 4].filter((k) => isLocal(k) && k !== best);
  const joined = [[0, 1], [0, 2], [1, 2]].filter(([i, j]) => codes[best][i] === codes[best][j]);
  const joins = [0, 1].map((axis) => joined.flatMap(([i, j]) => [places[i][axis], places[j][axis], null]));
  const words = `best: ${names[best]}` + (stuck.length ? `; metastable: ${stuck.map((k) => names[k]).join(", ")}` : "");
  const ends = at(top);
  const line = (y, k) => ({ type: "scatter", x: [0, top], y, line: { color: shades[k], width: k === best ? 3 : 1.2 } });
  const dots = (ks) => ({ type: "scatter", x: ks.length ? ks.map(() => beta) : [null], y: ks.length ? ks.map((k) => now[k]) : [null] });
  return {
    data: [
      { type: "scatter", x: joined.length ? joins[0] : [null], y: joined.length ? joins[1] : [null] },
      { type: "scatter", x: places.map(([x]) => x), y: places.map(([, y]) => y), marker: { color: [...codes[best]].map((cell) => colours[cell]) } },
      { type: "scatter", text: [words] },
      ...codes.map((_, k) => line([points[k].excess, ends[k]], k)),
      { type: "scatter", y: apart(ends, 0.05) },
      dots(held),
      dots([best]),
    ],
    traces: Array.from({ length: 11 }, (_, number) => number + 2),
  };
}
