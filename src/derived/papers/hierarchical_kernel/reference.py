"""Scores of tokens and of summaries, added up before the softmax, in plain Python.

X[l]    summaries of level l, T / 2^l rows; level 0 are the tokens        C   the kernel, c[m] weighs the row m back
S[l]    scores of level l, X[l] M[l] X[l]'                                alpha   weights of the levels
S       sum of alpha[l] S[l], each entry repeated 2^l times both ways

A summary ends with the first token of its block, so that no token sees its future. The levels together are one
attention with longer queries and keys.
"""

import math


def summaries(X, c):
    """The next level: row j is the sum of c[m] X[2 j - m], with zeros before the first row."""
    width = len(X[0])
    rows = []
    for j in range(math.ceil(len(X) / 2)):
        near = [(w, X[2 * j - m]) for m, w in enumerate(c) if 2 * j - m >= 0]
        rows.append([sum(w * row[i] for w, row in near) for i in range(width)])
    return rows


def averages(X):
    """The next level by means of a row and the one before it."""
    return summaries(X, [0.5, 0.5])


def block_means(X):
    """A next level that looks ahead: row j is the mean of rows 2 j and 2 j + 1."""
    return [[sum(column) / len(pair) for column in zip(*pair)] for pair in (X[k : k + 2] for k in range(0, len(X), 2))]


def pyramid(X, levels, summarise):
    found = [X]
    for _ in range(levels - 1):
        found.append(summarise(found[-1]))
    return found


def form(x, M, y):
    return sum(a * M[i][j] * b for i, a in enumerate(x) for j, b in enumerate(y))


def scores(levels, M, alpha):
    T, parts = range(len(levels[0])), list(enumerate(zip(levels, M, alpha)))
    return [[sum(w * form(X[i >> l], m, X[j >> l]) for l, (X, m, w) in parts) for j in T] for i in T]


def attention(S, values):
    """Causal softmax attention: row i mixes the values of tokens 0 to i."""
    outputs = []
    for i, row in enumerate(S):
        weights = [math.exp(s - max(row[: i + 1])) for s in row[: i + 1]]
        outputs.append([sum(w * v[k] for w, v in zip(weights, values)) / sum(weights) for k in range(len(values[0]))])
    return outputs


def layer(X, M, alpha, summarise):
    return attention(scores(pyramid(X, len(alpha), summarise), M, alpha), X)


def concatenated(levels, M, alpha):
    """Queries and keys of one attention with the same scores: the levels side by side."""
    T = range(len(levels[0]))
    keys = [[x for X, l in zip(levels, range(len(alpha))) for x in X[j >> l]] for j in T]
    queries = [
        [
            w * sum(X[i >> l][k] * M[l][k][m] for k in range(len(X[0])))
            for l, (X, w) in enumerate(zip(levels, alpha))
            for m in range(len(X[0]))
        ]
        for i in T
    ]
    return queries, keys


def sees_the_future(X, M, alpha, summarise):
    """The pairs (i, t), t > i, for which output i changes with token t."""
    before, found = layer(X, M, alpha, summarise), []
    for t in range(len(X)):
        other = [[x + 1.0 for x in row] if k == t else row for k, row in enumerate(X)]
        after = layer(other, M, alpha, summarise)
        found += [(i, t) for i in range(t) if after[i] != before[i]]
    return found


def text_plot(x, curves, label=""):
    """Print one or two curves over x."""
    low, high = (end(v for y in curves.values() for v in y) for end in (min, max))
    print(", ".join(f"{mark} {name}" for mark, name in zip("ox", curves)), f"from {low:.3g} to {high:.3g}; {label}")
    for k in range(0, len(x), -(-len(x) // 12)):
        at = {round(40 * (y[k] - low) / (high - low or 1)): mark for mark, y in zip("ox", curves.values())}
        print(f"{x[k]:8.3g} |", *(at.get(column, " ") for column in range(41)), sep="")


plot = globals().get("plot", text_plot)  # the book's page draws it

if __name__ == "__main__":
    # Scores of eight tokens and of their summaries, added up before the softmax.
    # - Set `summarise` to `block_means`: a summary then looks ahead, and outputs see the future.
    # - Set `alpha` to `[1.0, 0.0, 0.0]`: plain attention over tokens; no summary counts.

    X = [[1.0], [-0.5], [2.0], [0.3], [-1.2], [0.8], [1.5], [-0.7]]
    alpha = [0.5, 0.3, 0.2]  # weights of tokens, pairs, fours
    summarise = averages  # or block_means

    one = [[[1.0]]] * 3
    S = scores(pyramid(X, 3, summarise), one, alpha)
    print("scores of the last query:", [round(s, 3) for s in S[-1]])
    early = sees_the_future(X, one, alpha, summarise)
    print("outputs that see the future:", early or "none")

    plain = scores([X], one, [1.0])
    curves = {"three levels": S[-1], "tokens alone": plain[-1]}
    plot(range(8), curves, "key; score with the last query")
    result = [s for row in S for s in row]
