"""Least squares by one layer of linear attention, and attention as a memory, in plain Python.

X   n tokens, each a list of p features        Y   n responses, each a list of m numbers
L   p x p, with L L' = inverse of X'X / n       P   read-out, L' X' Y / n

The layer scores every pair of tokens, mixes the values and reads out: (1/n) (X L)(X L)' (X L) P. With this L it
returns the least-squares fit of Y. Fed with other inputs it keeps L and P, and is wrong.
"""

import math


def transpose(A):
    return [list(column) for column in zip(*A)]


def matmul(A, B):
    return [[sum(a * b for a, b in zip(row, column)) for column in zip(*B)] for row in A]


def scale(A, c):
    return [[c * a for a in row] for row in A]


def solve(A, B):
    """The matrix C with A C = B, by elimination with the largest pivot."""
    rows = [list(a) + list(b) for a, b in zip(A, B)]
    for k in range(len(A)):
        pivot = max(range(k, len(A)), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(len(A)):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k])]
    return [row[len(A) :] for row in rows]


def cholesky(A):
    """The lower triangular C with C C' = A."""
    C = [[0.0] * len(A) for _ in A]
    for i in range(len(A)):
        for j in range(i + 1):
            rest = A[i][j] - sum(C[i][k] * C[j][k] for k in range(j))
            C[i][j] = math.sqrt(rest) if i == j else rest / C[j][j]
    return C


def weights(X, Y):
    """L and P: all that the layer will ever know of Y, computed before it runs."""
    second_moment = scale(matmul(transpose(X), X), 1 / len(X))
    identity = [[float(i == j) for j in range(len(X[0]))] for i in range(len(X[0]))]
    L = cholesky(solve(second_moment, identity))
    return L, scale(matmul(transpose(matmul(X, L)), Y), 1 / len(X))


def attention(X, L):
    """The scores of all pairs of tokens, (1/n) (X L)(X L)'."""
    Z = matmul(X, L)
    return scale(matmul(Z, transpose(Z)), 1 / len(X))


def layer(X, L, P):
    """Linear attention with queries, keys and values X L, then the read-out."""
    return matmul(matmul(attention(X, L), matmul(X, L)), P)


def least_squares(X, Y):
    """The fitted values, from the normal equations."""
    return matmul(X, solve(matmul(transpose(X), X), matmul(transpose(X), Y)))


def recall(cue, patterns, beta=None):
    """One step of attention with the patterns as keys and values: linear, or softmax at inverse temperature beta."""
    scores = [sum(a * b for a, b in zip(pattern, cue)) for pattern in patterns]
    if beta is not None:
        scores = [math.exp(beta * (score - max(scores))) for score in scores]
        scores = [score / sum(scores) for score in scores]
    return [sum(score * x for score, x in zip(scores, column)) for column in zip(*patterns)]


def text_plot(x, curves, label=""):
    """Print one to three curves over x."""
    low, high = (end(v for y in curves.values() for v in y) for end in (min, max))
    print(", ".join(f"{mark} {name}" for mark, name in zip("ox+", curves)), f"from {low:.3g} to {high:.3g}; {label}")
    for k in range(0, len(x), -(-len(x) // 12)):
        at = {round(40 * (y[k] - low) / (high - low or 1)): mark for mark, y in zip("ox+", curves.values())}
        print(f"{x[k]:8.3g} |", *(at.get(column, " ") for column in range(41)), sep="")


plot = globals().get("plot", text_plot)  # the book's page draws it

if __name__ == "__main__":
    # One layer fits three points exactly. Fed with other inputs, it keeps its weights.
    # - Set `factor` to 1, then to -1: least squares does not move, the layer's answer changes by the factor's cube.
    # - Move the third point, `X[2]`, to `[2.0]`: the layer is refitted, and right again at factor 1.

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
    curves = {"the layer": third, "least squares": [fit[2][0]] * len(factors)}
    plot(factors, curves, "factor; fitted value of the third point")
    result = [v for (v,) in answer]
