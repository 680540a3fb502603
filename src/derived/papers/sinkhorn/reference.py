"""Softmax and Sinkhorn attention as transport plans, in plain Python.

S   scores, n x m          a, b   weights of the n queries and the m keys, each of sum one
P   plan, n x m, P[i][j] = exp(S[i][j] + f[i] + g[j]): how much of query i's weight goes to key j

A row step makes the rows of P sum to a; that is softmax. A column step makes its columns sum to b. Taking turns, the
two end in the one coupling of this form.
"""

import math


def logsumexp(values):
    top = max(values)
    return top + math.log(sum(math.exp(v - top) for v in values))


def plan(S, a, b, half_steps):
    """The table after so many half-steps, rows first, from g = ln b."""
    f, g = [0.0] * len(a), [math.log(w) for w in b]
    for step in range(half_steps):
        if step % 2 == 0:
            f = [math.log(a[i]) - logsumexp([s + h for s, h in zip(S[i], g)]) for i in range(len(a))]
        else:
            g = [math.log(b[j]) - logsumexp([S[i][j] + f[i] for i in range(len(a))]) for j in range(len(b))]
    return [[math.exp(S[i][j] + f[i] + g[j]) for j in range(len(b))] for i in range(len(a))]


def softmax(S, a, b):
    """Softmax attention in which row i has the mass a[i] and key j the prior weight b[j]."""
    weights = [[b[j] * math.exp(s - max(row)) for j, s in enumerate(row)] for row in S]
    return [[a[i] * w / sum(row) for w in row] for i, row in enumerate(weights)]


def columns(P):
    return [sum(column) for column in zip(*P)]


def objective(P, S, a, b):
    """<P, S> - KL(P | a b'), which softmax maximises under its row sums and Sinkhorn under both."""
    return sum(
        p * (S[i][j] - math.log(p / (a[i] * b[j]))) for i, row in enumerate(P) for j, p in enumerate(row) if p > 0
    )


def text_plot(x, curves, label=""):
    """Print one or two curves over x."""
    low, high = (end(v for y in curves.values() for v in y) for end in (min, max))
    print(", ".join(f"{mark} {name}" for mark, name in zip("ox", curves)), f"from {low:.3g} to {high:.3g}; {label}")
    for k in range(0, len(x), -(-len(x) // 12)):
        at = {round(40 * (y[k] - low) / (high - low or 1)): mark for mark, y in zip("ox", curves.values())}
        print(f"{x[k]:8.3g} |", *(at.get(column, " ") for column in range(41)), sep="")


plot = globals().get("plot", text_plot)  # the book's page draws it

if __name__ == "__main__":
    # The same scores, once with rows that sum to their weights (softmax), once with rows and columns (Sinkhorn).
    # - Lower `temperature` to 0.2: softmax sends nearly everything to one key, Sinkhorn still serves all of them.
    # - Set `half_steps` to 1: the Sinkhorn plan is softmax, and the columns are off.

    scores = [[2.0, 1.0, 0.0], [1.5, 0.5, 0.2], [1.0, 0.9, 0.1]]
    temperature = 1.0
    half_steps = 101  # a row step, a column step, a row step, …

    S = [[s / temperature for s in row] for row in scores]
    third = [1 / 3] * 3
    for name, P in (("softmax ", softmax(S, third, third)), ("Sinkhorn", plan(S, third, third, half_steps))):
        print(name, [[round(p, 4) for p in row] for row in P], "columns", [round(c, 4) for c in columns(P)])

    tried = [k / 10 for k in range(1, 31)]
    first = [columns(softmax([[s / T for s in row] for row in scores], third, third))[0] for T in tried]
    plot(tried, {"softmax": first, "Sinkhorn": [1 / 3] * len(tried)}, "temperature; what the first key receives")
    result = [p for row in plan(S, third, third, half_steps) for p in row]
