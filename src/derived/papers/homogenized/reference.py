"""Random layers push all tokens alike, in plain Python.

x     n tokens, unit vectors in d dimensions        V, A   a head: values (d x d), and the form of its logits (d x d)
eta   step of a layer, H its heads                  tau    the clock, eta^2 / H times the layers
R     overlap of two tokens                         u      mean overlap of all pairs, tokens with themselves included

A layer adds the mean of H random heads, times eta, to every token and normalises it. The heads have no mean, and yet
the tokens gather: the noise is shared. Many layers are a diffusion that knows eta, H and the layers through tau
alone.
"""

import math
import random


def dot(x, y):
    return sum(a * b for a, b in zip(x, y))


def matvec(M, x):
    return [dot(row, x) for row in M]


def normalise(x):
    length = math.sqrt(dot(x, x))
    return [a / length for a in x]


def gaussian(d, variance, generator):
    return [[generator.gauss(0, math.sqrt(variance)) for _ in range(d)] for _ in range(d)]


def head(x, V, A, beta):
    """What each token receives: V times its softmax mean of the tokens, with logits beta <A x_i, x_k>."""
    pushes = []
    for token in x:
        logits = [beta * dot(matvec(A, token), other) for other in x]
        top = max(logits)
        weights = [math.exp(logit - top) for logit in logits]
        mean = [sum(w * other[i] for w, other in zip(weights, x)) / sum(weights) for i in range(len(token))]
        pushes.append(matvec(V, mean))
    return pushes


def layer(x, eta, heads, beta, generator, shared=True):
    """One layer of random heads; with ``shared=False`` each token has value matrices of its own."""
    d = len(x[0])
    total = [[0.0] * d for _ in x]
    for _ in range(heads):
        A = gaussian(d, 1 / d, generator) if beta else [[0.0] * d for _ in range(d)]
        V = gaussian(d, 1 / d, generator)
        pushes = head(x, V, A, beta)
        if not shared:
            pushes = [head(x, gaussian(d, 1 / d, generator), A, beta)[i] for i in range(len(x))]
        total = [[t + p for t, p in zip(row, push)] for row, push in zip(total, pushes)]
    return [normalise([a + eta / heads * t for a, t in zip(token, row)]) for token, row in zip(x, total)]


def mean_overlap(x):
    """u: the squared length of the mean token."""
    mean = [sum(token[i] for token in x) / len(x) for i in range(len(x[0]))]
    return dot(mean, mean)


def one_push(R, p):
    """The overlap of two tokens after the same push of length p at right angles to both."""
    return (R + p * p) / (1 + p * p)


def logistic(u, tau):
    """Hot attention in many dimensions: du/dtau = u (1 - u)."""
    return 1 / (1 + (1 / u - 1) * math.exp(-tau))


def drift(R, d):
    """Mean motion of the overlap of two tokens under uniform attention, in d dimensions."""
    s = (1 + R) / 2  # of each token and of both: the squared length of their mean
    return (d - 2 + R * R) / d * s - (d - 1) / d * R * s


def kernel_moments(x, y, generator, samples):
    """Mean of <V x, e> and of <V x, V y> over random value matrices: zero, and <x, y>."""
    first, second = 0.0, 0.0
    for _ in range(samples):
        V = gaussian(len(x), 1 / len(x), generator)
        one, two = matvec(V, x), matvec(V, y)
        first, second = first + one[0] / samples, second + dot(one, two) / samples
    return first, second


def axes(n, d):
    return [[float(i == j) for j in range(d)] for i in range(n)]


def text_plot(x, curves, label=""):
    """Print one or two curves over x."""
    low, high = (end(v for y in curves.values() for v in y) for end in (min, max))
    print(", ".join(f"{mark} {name}" for mark, name in zip("ox", curves)), f"from {low:.3g} to {high:.3g}; {label}")
    for k in range(0, len(x), -(-len(x) // 12)):
        at = {round(40 * (y[k] - low) / (high - low or 1)): mark for mark, y in zip("ox", curves.values())}
        print(f"{x[k]:8.3g} |", *(at.get(column, " ") for column in range(41)), sep="")


plot = globals().get("plot", text_plot)  # the book's page draws it

if __name__ == "__main__":
    # Four tokens at right angles pass through layers of random heads: the noise is shared, and they gather.
    # - Set `shared` to `False`: each token gets noise of its own, and nothing gathers.
    # - Halve `eta`: four times as many layers do what these did; the clock tau is the same.

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
