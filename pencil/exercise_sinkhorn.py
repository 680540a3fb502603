"""sk-ex-regression: the derivative of a loss in the scores, from its derivative `P_bar` in the plan P.

Both are tables of the same shape, lists of rows. The plan alone is given: no scores and no iterates.
"""

import random

from sinkhorn import plan


def scores_gradient(P, P_bar): ...


# The check: differences of the loss sum P_bar P, where one score at a time moves.
def limit(S):
    n, m = len(S), len(S[0])
    return plan(S, [1 / n] * n, [1 / m] * m, 301)


def loss(S, P_bar, i, j, step):
    S = [[s + step * ((k, l) == (i, j)) for l, s in enumerate(row)] for k, row in enumerate(S)]
    return sum(p * q for one, two in zip(limit(S), P_bar) for p, q in zip(one, two))


def check(h=1e-4):
    draw = random.Random(1)
    for n, m in ((2, 2), (3, 4)):
        S, P_bar = ([[draw.gauss(0, 1) for _ in range(m)] for _ in range(n)] for _ in range(2))
        answer = scores_gradient(limit(S), P_bar)
        if answer is None:
            return "no answer yet"
        for i in range(n):
            for j in range(m):
                wanted = (loss(S, P_bar, i, j, h) - loss(S, P_bar, i, j, -h)) / (2 * h)
                if abs(answer[i][j] - wanted) > 1e-6:
                    return f"not right: a table of {n} x {m}, score ({i}, {j})"
    return "right"


print(check())
