"""Four tokens at right angles pass through layers of random heads: the noise is shared, and they gather.

- Set `shared` to `False`: each token gets noise of its own, and nothing gathers.
- Halve `eta`: four times as many layers do what these did; the clock tau is the same.
"""

import random

from homogenized import axes, drift, layer, logistic, mean_overlap
from picture import plot

n, d = 4, 24  # tokens, dimensions
eta, heads = 0.5, 2
shared = True

generator = random.Random(0)
x, tau, overlap = axes(n, d), [0.0], [1 / n]
while tau[-1] < 3:
    x = layer(x, eta, heads, 0.0, generator, shared)
    tau.append(tau[-1] + eta**2 / heads)
    overlap.append(mean_overlap(x))
curve = [logistic(1 / n, t) for t in tau]
print(f"{len(tau) - 1} layers, tau = {tau[-1]:.2f}: mean overlap {overlap[-1]:.3f}, logistic curve {curve[-1]:.3f}")

plot(tau, {"these layers": overlap, "logistic curve": curve}, "clock tau; mean overlap")
result = [curve[-1], drift(0.0, d)]
