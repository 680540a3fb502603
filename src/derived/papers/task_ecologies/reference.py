"""What a loss makes a model tell apart, at which price, and what one text can pay, in plain Python.

prior[w]       probability of world w        D[c]   probability of context c
laws[w][c]     distribution of the next token in world w and context c
code           the cell of each world; the model knows the cell and not the world

The best loss of a code is a lower bound plus, for each cell, the Jensen-Shannon divergence of the distributions that it
merges. With a price beta per nat of the code's entropy a distinction is kept as long as its gain exceeds its price.
"""

import math
from itertools import product


def entropy(law):
    return -sum(p * math.log(p) for p in law if p > 0)


def mixture(weights, laws):
    total = sum(weights)
    return [sum(w * law[v] for w, law in zip(weights, laws)) / total for v in range(len(laws[0]))]


def js(weights, laws):
    """Jensen-Shannon divergence in nats, of distributions with weights that need not sum to one."""
    total = sum(weights)
    return entropy(mixture(weights, laws)) - sum(w / total * entropy(law) for w, law in zip(weights, laws))


def cells(code):
    return [[w for w, c in enumerate(code) if c == cell] for cell in sorted(set(code))]


def excess(prior, D, laws, code):
    """What a code loses above the bound, with its best reader."""
    total = 0.0
    for cell in cells(code):
        weights = [prior[w] for w in cell]
        total += sum(weights) * sum(d * js(weights, [laws[w][c] for w in cell]) for c, d in enumerate(D))
    return total


def complexity(prior, code):
    return entropy([sum(prior[w] for w in cell) for cell in cells(code)])


def codes(worlds):
    """Every partition of the worlds, as cell labels in the order of first use."""
    found = [[]]
    for _ in range(worlds):
        found = [[*code, k] for code in found for k in range(max(code, default=-1) + 2)]
    return found


def best_code(prior, D, laws, beta, R=1):
    """The least loss per letter plus price; `laws` are those of texts of R letters."""
    costs = [(excess(prior, D, laws, code) / R + beta * complexity(prior, code), code) for code in codes(len(prior))]
    return min(costs)[1]


def split_gain(prior, D, laws, A, B):
    """What telling the worlds of A from those of B is worth, and the entropy that it costs, inside the cell of both."""
    pi = [sum(prior[w] for w in part) for part in (A, B)]
    gain = 0.0
    for c, d in enumerate(D):
        means = [mixture([prior[w] for w in part], [laws[w][c] for w in part]) for part in (A, B)]
        gain += d * js(pi, means)
    return gain, entropy([p / sum(pi) for p in pi])


def repeat(laws, R):
    """The distribution of R letters, drawn independently in the same world; the one context is the empty text."""
    return [[[math.prod(text) for text in product(law, repeat=R)]] for (law,) in laws]


def text_plot(x, curves, label=""):
    """Print one or two curves over x."""
    low, high = (end(v for y in curves.values() for v in y) for end in (min, max))
    print(", ".join(f"{mark} {name}" for mark, name in zip("ox", curves)), f"from {low:.3g} to {high:.3g}; {label}")
    for k in range(0, len(x), -(-len(x) // 12)):
        at = {round(40 * (y[k] - low) / (high - low or 1)): mark for mark, y in zip("ox", curves.values())}
        print(f"{x[k]:8.3g} |", *(at.get(column, " ") for column in range(41)), sep="")


plot = globals().get("plot", text_plot)  # the book's page draws it

if __name__ == "__main__":
    # Three coins, tossed R times. The best code keeps a distinction as long as it is worth its price.
    # - Raise `beta` from 0.3 to 0.4 and 0.6: first two coins are merged, then all three.
    # - Set `R = 8`: eight tosses pay for the coin once, and at `beta = 0.3` nothing is kept.
    # - Make the middle coin like the first, `[0.9, 0.1]`: it is merged at a far lower price.

    prior = [1 / 3, 1 / 3, 1 / 3]
    laws = [[[1.0, 0.0]], [[0.5, 0.5]], [[0.0, 1.0]]]  # what each coin shows, in its one context
    beta = 0.3  # price of a nat of the code's entropy
    R = 1  # letters of a text

    code = best_code(prior, [1.0], repeat(laws, R), beta, R)
    lost, kept = excess(prior, [1.0], repeat(laws, R), code), complexity(prior, code)
    print("best code", code, f": loses {lost:.4f} nats a text, keeps {kept:.4f} nats of the world")
    gain, price = split_gain(prior, [1.0], laws, [0], [1])
    print(f"with one toss telling coin 1 from coin 2 is worth it up to beta = {gain / price:.4f}")

    lengths = list(range(1, 10))
    spent = [excess(prior, [1.0], repeat(laws, r), [0, 0, 0]) for r in lengths]
    plot(lengths, {"nats that knowing the coin saves in a text": spent, "ln 3": [math.log(3)] * 9}, "tosses")
    result = [lost, kept, gain, spent[-1]]
