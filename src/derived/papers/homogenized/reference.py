"""One shared push, in plain Python: a random layer, and what it does to the odds that two tokens agree.

x     n tokens, unit vectors in d dimensions        eta, H   step of a layer, its heads; h = eta^2 / H
V     a head's values (d x d), with mean zero       u        mean overlap of all pairs, tokens with themselves included

Attention is uniform: each token reads the mean of all. A layer adds the mean of H random heads, times eta, to every
token and normalises it. No head pulls; the push is shared, and the odds u / (1 - u) grow by about 1 + h in each layer.
"""

import itertools
import math
import random


def dot(x, y):
    return sum(a * b for a, b in zip(x, y))


def normalise(x):
    length = math.sqrt(dot(x, x))
    return [a / length for a in x]


def axes(n, d):
    return [[float(i == j) for j in range(d)] for i in range(n)]


def mean(x):
    return [sum(column) / len(x) for column in zip(*x)]


def mean_overlap(x):
    """u, the squared length of the mean token."""
    return dot(mean(x), mean(x))


def push(m, eta, heads, generator):
    """What the heads make of the mean token m: (eta / heads) times the sum of V m, V with entries of variance 1/d."""
    scale = eta / heads / math.sqrt(len(m))
    return [scale * sum(generator.gauss(0, 1) * a for _ in range(heads) for a in m) for _ in m]


def layer(x, eta, heads, generator, shared=True):
    """One layer; with ``shared=False`` each token has separate value matrices."""
    m = mean(x)
    one = push(m, eta, heads, generator)
    pushes = [one if shared else push(m, eta, heads, generator) for _ in x]
    return [normalise([a + b for a, b in zip(token, p)]) for token, p in zip(x, pushes)]


def wide_layer(R, Q, h):
    """The overlaps after a layer of infinite width, where Q holds the overlaps of what the tokens read."""
    length = [math.sqrt(1 + h * Q[i][i]) for i in range(len(R))]
    return [[(r + h * q) / (a * b) for r, q, b in zip(*rows, length)] for *rows, a in zip(R, Q, length)]


def odds(u):
    return u / (1 - u)


def text_plot(x, curves, label=""):
    """Print one or two curves over x."""
    low, high = (end(v for y in curves.values() for v in y) for end in (min, max))
    print(", ".join(f"{mark} {name}" for mark, name in zip("ox", curves)), f"from {low:.3g} to {high:.3g}; {label}")
    for k in range(0, len(x), -(-len(x) // 12)):
        at = {round(40 * (y[k] - low) / (high - low or 1)): mark for mark, y in zip("ox", curves.values())}
        print(f"{x[k]:8.3g} |", *(at.get(column, " ") for column in range(41)), sep="")


plot = globals().get("plot", text_plot)  # the book's page draws it

if __name__ == "__main__":
    # Four tokens at right angles pass through random layers: the push is shared, and they gather.
    # - Set `shared` to `False`: each token gets a push for itself, and nothing gathers.
    # - Change `eta` and `heads`: a layer multiplies the odds by about 1 + eta^2 / heads, whatever the step.

    n, d, layers = 4, 48, 6
    eta, heads = 1.0, 1
    shared = True

    generator, h = random.Random(0), eta**2 / heads
    x, u = axes(n, d), [1 / n]
    for _ in range(layers):
        x = layer(x, eta, heads, generator, shared)
        u.append(mean_overlap(x))
    grown = [odds(b) / odds(a) for a, b in itertools.pairwise(u)]
    print("the odds grow by", *(f"{g:.2f}" for g in grown), f"and 1 + h = {1 + h:.2f}")
    law = [math.log(odds(1 / n) * (1 + h) ** k) for k in range(layers + 1)]
    plot(range(layers + 1), {"these layers": [math.log(odds(a)) for a in u], "law": law}, "layers; log odds")
    result = [law[-1], wide_layer(axes(2, 2), [[0.5, 0.5], [0.5, 0.5]], 0.5)[0][1]]
