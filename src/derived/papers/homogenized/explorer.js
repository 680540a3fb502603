// Tokens on spheres, at a layer, and by how many degrees the spheres are turned about their upright axis.
// given: layers; places[panel][layer], right, up and front of each token in turn; net, lines of longitude and latitude
// likewise; all in thousandths of the radius

function compute([layer, degrees], { layers, places, net }) {
  const angle = (degrees * Math.PI) / 180;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const turned = (flat) =>
    Array.from({ length: flat.length / 3 }, (_, k) => {
      const [x, y, z] = flat.slice(3 * k, 3 * k + 3).map((part) => part / 1000);
      return [x * cos + z * sin, y, z * cos - x * sin];
    });
  const seen = net.flatMap((line) => [...turned(line), [null, null, -1]].map(([x, y, z]) => (z < 0 ? [null, null] : [x, y])));
  const lines = { type: "scatter", x: seen.map(([x]) => x), y: seen.map(([, y]) => y) };
  const overlap = (tokens) =>
    [0, 1, 2].reduce((total, axis) => total + (tokens.reduce((sum, at) => sum + at[axis], 0) / tokens.length) ** 2, 0);
  return {
    data: places.flatMap((panel) => {
      const tokens = turned(panel[layers.indexOf(layer)]);
      const opacity = tokens.map(([, , z]) => 0.6 + 0.4 * z);
      const dots = { type: "scatter", x: tokens.map(([x]) => x), y: tokens.map(([, y]) => y), marker: { opacity } };
      return [lines, dots, { type: "scatter", text: [`overlap ${overlap(tokens).toFixed(2)}`] }];
    }),
  };
}
