"""What a model must tell apart, and at which price it will, in plain Python.

prior[w]       probability of world w        D[c]   probability of context c
laws[w][c]     distribution of the next token in world w and context c
code           the cell of each world; the model knows the cell and not the world

The best loss of a code is a floor plus, for each cell, the Jensen-Shannon divergence of the distributions that it
merges. With a price beta per nat of the code's entropy a distinction is kept as long as its gain exceeds its price.
"""

import math
from itertools import combinations


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


def floor(prior, D, laws):
    """The loss of a model that knows the world."""
    return sum(p * d * entropy(laws[w][c]) for w, p in enumerate(prior) for c, d in enumerate(D))


def excess(prior, D, laws, code):
    """What a code loses over the floor, with its best decoder."""
    total = 0.0
    for cell in cells(code):
        weights = [prior[w] for w in cell]
        total += sum(weights) * sum(d * js(weights, [laws[w][c] for w in cell]) for c, d in enumerate(D))
    return total


def best_loss(prior, D, laws, code):
    """The cross-entropy of the best decoder, computed from its predictions."""
    total = 0.0
    for cell in cells(code):
        for c, d in enumerate(D):
            said = mixture([prior[w] for w in cell], [laws[w][c] for w in cell])
            for w in cell:
                total -= prior[w] * d * sum(p * math.log(q) for p, q in zip(laws[w][c], said) if p > 0)
    return total


def complexity(prior, code):
    return entropy([sum(prior[w] for w in cell) for cell in cells(code)])


def cost(prior, D, laws, code, beta):
    return excess(prior, D, laws, code) + beta * complexity(prior, code)


def codes(worlds):
    """Every partition of the worlds, as cell labels in the order of first use."""
    found = [[]]
    for _ in range(worlds):
        found = [[*code, k] for code in found for k in range(max(code, default=-1) + 2)]
    return found


def best_code(prior, D, laws, beta):
    return min(codes(len(prior)), key=lambda code: cost(prior, D, laws, code, beta))


def split_gain(prior, D, laws, A, B):
    """What telling the worlds of A from those of B is worth, and the entropy that it costs, inside the cell of both."""
    pi = [sum(prior[w] for w in part) for part in (A, B)]
    gain = 0.0
    for c, d in enumerate(D):
        means = [mixture([prior[w] for w in part], [laws[w][c] for w in part]) for part in (A, B)]
        gain += d * js(pi, means)
    return gain, entropy([p / sum(pi) for p in pi])


def equivalent(laws, D, w, u):
    """Whether no context of the training ecology tells two worlds apart."""
    return all(laws[w][c] == laws[u][c] for c, d in enumerate(D) if d > 0)


def free_codes(prior, D, laws):
    """The codes without excess: those whose cells hold equivalent worlds only."""
    return [
        code
        for code in codes(len(prior))
        if all(equivalent(laws, D, w, u) for cell in cells(code) for w, u in combinations(cell, 2))
    ]


def text_plot(x, curves, label=""):
    """Print one or two curves over x."""
    low, high = (end(v for y in curves.values() for v in y) for end in (min, max))
    print(", ".join(f"{mark} {name}" for mark, name in zip("ox", curves)), f"from {low:.3g} to {high:.3g}; {label}")
    for k in range(0, len(x), -(-len(x) // 12)):
        at = {round(40 * (y[k] - low) / (high - low or 1)): mark for mark, y in zip("ox", curves.values())}
        print(f"{x[k]:8.3g} |", *(at.get(column, " ") for column in range(41)), sep="")


plot = globals().get("plot", text_plot)  # the book's page draws it

if __name__ == "__main__":
    # Three worlds that differ in one context. Telling them apart costs; the best code keeps what is worth its price.
    # - Raise `beta` from 0.3 to 0.4 and 0.6: first two worlds are merged, then all three.
    # - Make the middle world like the first, `[0.9, 0.1]`: it is merged at a far lower price.

    prior = [1 / 3, 1 / 3, 1 / 3]
    laws = [[[1.0, 0.0]], [[0.5, 0.5]], [[0.0, 1.0]]]  # what each world writes next, in its one context
    beta = 0.3  # price of a nat of the code's entropy

    code = best_code(prior, [1.0], laws, beta)
    lost, told = excess(prior, [1.0], laws, code), complexity(prior, code)
    print("best code", code, f": loses {lost:.4f} nats, keeps {told:.4f} nats of the world")
    gain, price = split_gain(prior, [1.0], laws, [0], [1])
    print(f"telling world 1 from world 2 is worth it up to beta = {gain / price:.4f}")

    prices = [k / 50 for k in range(51)]
    plot(
        prices,
        {"nats of the world that are kept": [complexity(prior, best_code(prior, [1.0], laws, b)) for b in prices]},
        "beta",
    )
    result = [lost, told, gain]
