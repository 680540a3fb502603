"""One layer fits three points exactly. Fed with other inputs, it keeps its weights.

- Set `factor` to 1, then to -1: least squares does not move, the layer's answer changes by the cube of the factor.
- Move the third point, `X[2]`, to `[2.0]`: the layer is refitted, and right again at factor 1.
"""

from ols_attention import layer, least_squares, scale, weights
from picture import plot

X = [[1.0], [1.0], [5.0]]
Y = [[1.0], [2.0], [3.0]]
factor = 2.0  # the layer is fed with the inputs times this

L, P = weights(X, Y)
fit = least_squares(scale(X, factor), Y)
answer = layer(scale(X, factor), L, P)
print("least squares", [round(v, 4) for (v,) in fit])
print("the layer    ", [round(v, 4) for (v,) in answer])

factors = [k / 20 for k in range(-20, 45)]
third = [layer(scale(X, c), L, P)[2][0] for c in factors]
plot(
    factors,
    {"the layer": third, "least squares": [fit[2][0]] * len(factors)},
    "factor; fitted value of the third point",
)
result = [v for (v,) in answer]
