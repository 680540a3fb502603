"""How much larger a gradient is at the input than at the output of a deep network at initialisation.

- Halve `alpha`: the gradient of the saturating network shrinks, at a thousand blocks by orders of magnitude.
- Set `attention` to 0: with LayerNorm the gradient now grows in proportion to the depth.
"""

import math

from picture import plot
from signal_propagation import erf, growth, layer_norm

alpha = 0.5  # slope of erf(alpha x), which stands in place of LayerNorm
attention, mlp = 1.0, 1.0  # variances that the two branches add
tokens = math.inf

depths = [round(10 ** (k / 6)) for k in range(19)]
norm = [growth(layer_norm, attention, mlp, tokens, depth) for depth in depths]
saturating = [growth(erf(alpha), attention, mlp, tokens, depth) for depth in depths]
for depth, one, other in list(zip(depths, norm, saturating))[::6]:
    print(f"{depth:5d} blocks: LayerNorm {one:8.4g}   erf {other:8.4g}")

plot(
    [math.log10(depth) for depth in depths],
    {"LayerNorm": [math.log10(J) for J in norm], "erf": [math.log10(J) for J in saturating]},
    "log10 of the depth; log10 of J",
)
result = [norm[-1], saturating[-1]]
