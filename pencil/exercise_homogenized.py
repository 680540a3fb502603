"""ht-ex-drift: the drift of all overlaps, per unit of tau.

R is the table of overlaps of n unit tokens, pi a table of attention whose rows sum to one and which
every head has, d the width. Return the n x n table of drifts, as a list of rows.
"""

from homogenized import dot, matvec, normalise


def drift_of_overlaps(R, pi, d): ...


# The check: the mean over all small value matrices, by second differences in each of their entries.
def moved(x, pi, V):
    y = [normalise([a + b for a, b in zip(t, matvec(V, [dot(row, c) for c in zip(*x)]))]) for t, row in zip(x, pi)]
    return [[dot(a, b) for b in y] for a in y]


def check(h=1e-3):
    x = [normalise(v) for v in ([1.0, 0.5, 0.0], [0.2, 1.0, 0.3], [0.2, 1.0, 0.3], [-0.4, 0.1, 1.0])]
    pi, d, n = [[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.1, 0.7], [0.1, 0.1, 0.1, 0.7], [0.25] * 4], 3, range(4)
    R, total = [[dot(a, b) for b in x] for a in x], [[0.0] * 4 for _ in x]
    for entry in range(d * d):
        up, down = (moved(x, pi, [[s * h * (d * i + j == entry) for j in range(d)] for i in range(d)]) for s in (1, -1))
        total = [
            [t + (a + b - 2 * r) / (2 * d * h * h) for t, a, b, r in zip(*rows)] for rows in zip(total, up, down, R)
        ]
    answer = drift_of_overlaps(R, pi, d)
    if answer is None:
        return "no answer yet"
    if any(abs(answer[i][i]) > 1e-9 for i in n):
        return "not right: a token does not keep its length"
    if abs(answer[1][2]) > 1e-9:
        return "not right: two tokens that coincide part"
    wrong = [(i, j) for i in n for j in n if abs(answer[i][j] - total[i][j]) > 1e-4]
    return f"not right: the overlap of tokens {wrong[0]} moves otherwise" if wrong else "right"


print(check())
