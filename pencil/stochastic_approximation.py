"""Learning from a stream that never forgets, in plain Python.

x   iterate, x <- x + a_n h(x, Y_n)        a_n   step n ** -alpha, or 1 / n        h   what a datum asks for
A component is a world that is drawn once and kept; w are the probabilities of the worlds.

One stream ends at the root of its own world, so its limit is random. A learner that meets a fresh world at each step
goes somewhere else, where no single world would take it.
"""

import random
from fractions import Fraction


def iterate(field, data, step, x=0.0):
    """The course of x <- x + step(n) field(x, y), n = 1, 2, ... along the data."""
    course = [x]
    for n, y in enumerate(data, start=1):
        x += step(n) * field(x, y)
        course.append(x)
    return course


def linear(worlds):
    """The field b - A x of the world that the datum names."""
    return lambda x, world: worlds[world][0] - worlds[world][1] * x


def roots(worlds):
    return [b / A for b, A in worlds]


def root_of_many(worlds, w):
    """Where a learner of many streams ends: the root of the mean field."""
    return sum(p * b for p, (b, _) in zip(w, worlds)) / sum(p * A for p, (_, A) in zip(w, worlds))


def closed_classes(P):
    """The sets of states of a finite chain that are never left, smallest ones; P is a table of probabilities."""
    size = range(len(P))
    reach = [{i} for i in size]
    for _ in size:
        for i in size:
            reach[i] |= {k for j in set(reach[i]) for k in size if P[j][k] > 0}
    return sorted({frozenset(reach[i]) for i in size if all(i in reach[j] for j in reach[i])}, key=min)


def nullity(M):
    """The dimension of the kernel of a square matrix, exactly, by elimination in fractions."""
    rows, rank = [[Fraction(x) for x in row] for row in M], 0
    for column in range(len(M)):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column] != 0), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[rank])]
        rank += 1
    return len(M) - rank


def sojourn(beta, generator):
    """How long a stream keeps its value: longer than t with probability t ** -beta, at least two steps."""
    t = 2
    while generator.random() < (t / (t - 1)) ** -beta:
        t += 1
    return t


def alternating(beta, length, generator):
    """Zeros and ones in turn, each kept for a heavy-tailed time: ergodic, with a long memory for beta below two."""
    data, value = [], generator.randrange(2)
    while len(data) < length:
        data += [value] * sojourn(beta, generator)
        value = 1 - value
    return data[:length]


def attention_of_urn(ones, zeros, length, generator):
    """A head with equal scores that reads a prompt and then its own samples: the share of ones that it ends at."""
    for _ in range(length):
        written = generator.random() < ones / (ones + zeros)
        ones, zeros = ones + written, zeros + (not written)
    return ones / (ones + zeros)


def constant_step_variance(rho, a):
    """Stationary variance of x <- x + a (Y - x) on data +-1 of correlation rho ** j, by its two moment equations."""
    cross = a / (1 - rho * (1 - a))  # E x_n Y_n, from E x_n Y_n = (1 - a) rho E x_{n-1} Y_{n-1} + a
    return (a * a + 2 * a * (1 - a) * rho * cross) / (1 - (1 - a) ** 2)


def main():
    worlds, w = [(1.0, 2.0), (2.0, 0.5)], [0.3, 0.7]
    for k in range(2):
        end = iterate(linear(worlds), [k] * 20_000, lambda n: 1 / n)[-1]
        print(f"a life in world {k + 1} ends at {end:.3f}; its root is {roots(worlds)[k]}")
    draw = random.Random(0)
    many = iterate(linear(worlds), draw.choices((0, 1), w, k=20_000), lambda n: 1 / n)[-1]
    print(f"a fresh world at each step: {many:.3f}; root of the mean field {root_of_many(worlds, w):.3f}")
    P = [[0.5, 0.5, 0.0, 0.0], [0.25, 0.75, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.25, 0.0, 0.25, 0.5]]
    left = [[P[i][j] - (i == j) for j in range(4)] for i in range(4)]
    print(f"a chain of four states: closed classes {[sorted(c) for c in closed_classes(P)]}, nullity {nullity(left)}")
    data = alternating(1.5, 20_000, draw)
    for alpha in (0.55, 1.0):
        course = iterate(lambda x, y: y - x, data, lambda n, alpha=alpha: n**-alpha, x=0.5)
        print(f"steps n^-{alpha}: late iterates run from {min(course[10_000:]):.2f} to {max(course[10_000:]):.2f}")
    print("urns from one and one:", [round(attention_of_urn(1, 1, 2000, draw), 2) for _ in range(4)])


if __name__ == "__main__":
    main()
