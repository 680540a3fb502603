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


def main():
    print(f"two tokens at right angles, one push of 1/2: overlap {one_push(0.0, 0.5)}")
    generator = random.Random(0)
    n, d, eta, heads = 4, 24, 0.5, 2
    for shared in (True, False):
        x = axes(n, d)
        for _ in range(int(3 / (eta**2 / heads))):
            x = layer(x, eta, heads, 0.0, generator, shared)
        print(f"{'shared' if shared else 'private'} noise, tau = 3: mean overlap {mean_overlap(x):.3f}", end="; ")
    print(f"logistic curve {logistic(1 / n, 3):.3f}; at the start {1 / n}")
    first, second = kernel_moments(axes(2, 8)[0], normalise([1.0] * 8), generator, 2000)
    print(f"a random head: mean push {first:.3f}, mean product {second:.3f}, where <x, y> = {1 / math.sqrt(8):.3f}")


if __name__ == "__main__":
    main()
