"""Learning from a stream that never forgets, in plain Python.

x   iterate, x <- x + a_n h(x, Y_n)        a_n   step n ** -alpha, or 1 / n        h   what a datum asks for
A world is drawn once and kept; w are the probabilities of the worlds.

One stream ends at the root of its own world, so its limit is random. A learner that meets a fresh world at each step
goes somewhere else, where no single world would take it.
"""

import random


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
    """Where a learner of each world ends."""
    return [b / A for b, A in worlds]


def root_of_many(worlds, w):
    """Where a learner ends that meets a fresh world at each step: the root of the mean field."""
    return sum(p * b for p, (b, _) in zip(w, worlds)) / sum(p * A for p, (_, A) in zip(w, worlds))


def stay(beta, generator):
    """How long a stream keeps its value: longer than t with probability t ** -beta, at least two steps."""
    t = 2
    while generator.random() < (t / (t - 1)) ** -beta:
        t += 1
    return t


def alternating(beta, length, generator):
    """Zeros and ones in turn, each kept for a heavy-tailed time: one world, with a long memory for beta below two."""
    data, value = [], generator.randrange(2)
    while len(data) < length:
        data += [value] * stay(beta, generator)
        value = 1 - value
    return data[:length]


def fed_with_itself(ones, zeros, length, generator):
    """A head with equal scores that reads a prompt and then its own samples: the share of ones that it ends at."""
    for _ in range(length):
        written = generator.random() < ones / (ones + zeros)
        ones, zeros = ones + written, zeros + (not written)
    return ones / (ones + zeros)


def constant_step_variance(rho, a):
    """Stationary variance of x <- x + a (Y - x) on data +-1 of correlation rho ** j, by its two moment equations."""
    cross = a / (1 - rho * (1 - a))  # E x_n Y_n, from E x_n Y_n = (1 - a) rho E x_{n-1} Y_{n-1} + a
    return (a * a + 2 * a * (1 - a) * rho * cross) / (1 - (1 - a) ** 2)


def text_plot(x, curves, label=""):
    """Print one to three curves over x."""
    low, high = (end(v for y in curves.values() for v in y) for end in (min, max))
    print(", ".join(f"{mark} {name}" for mark, name in zip("ox+", curves)), f"from {low:.3g} to {high:.3g}; {label}")
    for k in range(0, len(x), -(-len(x) // 12)):
        at = {round(40 * (y[k] - low) / (high - low or 1)): mark for mark, y in zip("ox+", curves.values())}
        print(f"{x[k]:8.3g} |", *(at.get(column, " ") for column in range(41)), sep="")


plot = globals().get("plot", text_plot)  # the book's page draws it

if __name__ == "__main__":
    # Two worlds, one learner. A life in one world ends at its root; a fresh world at each step ends somewhere else.
    # - Set `w` to `[0.5, 0.5]`: the root of the many moves, the roots of the worlds stay.
    # - Let the first world pull harder, `(1.0, 6.0)`: its root goes down, and drags that of the many along.
    # - Set `alpha` to `1.0`: the swings on the stream with long stays end.

    worlds = [(1.0, 2.0), (2.0, 0.5)]  # world k asks for b - A x: (b, A)
    w = [0.3, 0.7]  # probabilities of the worlds
    alpha, steps, draw = 0.55, 4000, random.Random(0)

    lives = [iterate(linear(worlds), [k] * steps, lambda n: 1 / n) for k in (0, 1)]
    fresh = iterate(linear(worlds), draw.choices((0, 1), w, k=steps), lambda n: 1 / n)
    for k in (0, 1):
        print(f"a life in world {k + 1} ends at {lives[k][-1]:.3f}; its root is {roots(worlds)[k]:.3f}")
    print(f"a fresh world at each step: {fresh[-1]:.3f}; root of the mean field {root_of_many(worlds, w):.3f}")

    swing = iterate(lambda x, y: y - x, alternating(1.5, steps, draw), lambda n: n**-alpha, x=0.5)
    print(
        f"long stays, steps n^-{alpha}: the late iterates run from {min(swing[2000:]):.2f} to {max(swing[2000:]):.2f}"
    )
    print("heads fed with themselves end at", [round(fed_with_itself(2, 3, 1000, draw), 2) for _ in range(4)])

    late = range(40, steps, 40)
    courses = {"world 1": lives[0], "world 2": lives[1], "a fresh world at each step": fresh}
    plot(late, {name: [course[n] for n in late] for name, course in courses.items()}, "step; iterate")
    result = [*roots(worlds), root_of_many(worlds, w), constant_step_variance(0.9, 0.1)]
