"""ols-ex-context: the ridge predictions at the queries `Xq`, by attention whose values are the labels Y.

Xq, X and Y are lists, a row for each token. The loss is the mean squared error plus `ridge` times the
sum of the squared slopes.
"""

import random

from ols_attention import matmul


def ridge_in_context(Xq, X, Y, ridge): ...


# The check: the predictions are linear in the query, and no other slopes have a lower loss.
def loss(w, X, Y, ridge):
    errors = [y - sum(a * b for a, b in zip(x, w)) for x, (y,) in zip(X, Y)]
    return sum(e * e for e in errors) / len(X) + ridge * sum(b * b for b in w)


def check():
    draw = random.Random(1)
    for ridge in (0.0, 0.1, 2.0):
        X, Y, Xq = ([[draw.gauss(0, 1) for _ in range(m)] for _ in range(n)] for n, m in ((8, 2), (8, 1), (3, 2)))
        found = ridge_in_context([[1.0, 0.0], [0.0, 1.0]], X, Y, ridge)
        if found is None:
            return "no answer yet"
        (a,), (b,) = found
        for one, other in (([a + 1, b], [a - 1, b]), ([a, b + 1], [a, b - 1])):
            if abs(loss(one, X, Y, ridge) - loss(other, X, Y, ridge)) > 1e-9:
                return f"not right: at ridge = {ridge} other slopes have a lower loss"
        wanted = matmul(Xq, [[a], [b]])
        if max(abs(v - w) for (v,), (w,) in zip(ridge_in_context(Xq, X, Y, ridge), wanted)) > 1e-9:
            return f"not right: at ridge = {ridge} it is not linear in the query"
    return "right"


print(check())
