"""Draft and verify, exactly and with a budget, in plain Python.

p   distribution of the draft, a list of V probabilities        q   that of the verifier
n   a drafted token        gamma   up to which probability it is raised, q[n] <= gamma <= 1
h   target of a drafted token: gamma at n, the rest of q shrunk in proportion

Draft n from p, keep it with probability min(1, gamma / p[n]), else draw from the part of h above p. With gamma = q[n]
this is speculative sampling. Cactus raises gamma by a budget delta; what comes out lies between draft and verifier.
"""

import math


def exact(q, n):
    return q[n]


def cactus(delta):
    return lambda q, n: min(1.0, q[n] + math.sqrt(2 * delta * q[n] * (1 - q[n])))


def target(q, n, gamma):
    if q[n] == 1:
        return list(q)
    return [gamma if i == n else w * (1 - gamma) / (1 - q[n]) for i, w in enumerate(q)]


def kept(p, q, rule):
    """The probability that a draft is kept."""
    return sum(min(w, rule(q, n)) for n, w in enumerate(p))


def emitted(p, q, rule):
    """The distribution of the token that is written."""
    out = [min(w, rule(q, n)) for n, w in enumerate(p)]
    for n, w in enumerate(p):
        gamma = rule(q, n)
        if w > gamma:  # the draft may be rejected: what is written then
            above = [max(a - b, 0.0) for a, b in zip(target(q, n, gamma), p)]
            out = [o + (w - gamma) * a / sum(above) for o, a in zip(out, above)]
    return out


def draw(weights, generator):
    at = generator.random() * sum(weights)
    for token, weight in enumerate(weights):
        at -= weight
        if at < 0:
            return token
    return max(token for token, weight in enumerate(weights) if weight > 0)


def sample(p, q, rule, generator):
    """One token, and whether it is the draft."""
    n = draw(p, generator)
    gamma = rule(q, n)
    if generator.random() * p[n] < gamma:
        return n, True
    return draw([max(a - b, 0.0) for a, b in zip(target(q, n, gamma), p)], generator), False


def total_variation(p, q):
    return sum(abs(a - b) for a, b in zip(p, q)) / 2


def kl(h, q):
    return sum(a * math.log(a / b) if b else math.inf for a, b in zip(h, q) if a > 0)


def text_plot(x, curves, label=""):
    """Print one or two curves over x."""
    low, high = (end(v for y in curves.values() for v in y) for end in (min, max))
    print(", ".join(f"{mark} {name}" for mark, name in zip("ox", curves)), f"from {low:.3g} to {high:.3g}; {label}")
    for k in range(0, len(x), -(-len(x) // 12)):
        at = {round(40 * (y[k] - low) / (high - low or 1)): mark for mark, y in zip("ox", curves.values())}
        print(f"{x[k]:8.3g} |", *(at.get(column, " ") for column in range(41)), sep="")


plot = globals().get("plot", text_plot)  # the book's page draws it

if __name__ == "__main__":
    # A draft proposes a token, a verifier keeps it or not. A budget keeps more, and changes what is written.
    # - Set `delta` to 0: nothing is paid, and the verifier's own distribution comes out.
    # - Set `delta` to 0.01: not every draft is kept, and the price is still the gain.
    # - Move the draft away, `p = [0.1, 0.1, 0.8]`: less is kept, and each kept draft costs as much.

    q = [1 / 3, 1 / 3, 1 / 3]  # verifier
    p = [1 / 2, 1 / 2, 0]  # draft
    delta = 1 / 16  # budget in nats

    out = emitted(p, q, cactus(delta))
    gained = kept(p, q, cactus(delta)) - kept(p, q, exact)
    print(f"kept: {kept(p, q, exact):.4f} exactly, {gained:.4f} more with the budget")
    print(f"paid: {total_variation(out, q):.4f} in total variation, {kl(out, q):.4f} nats in KL")
    print("written:", [round(w, 4) for w in out])

    budgets = [k / 500 for k in range(51)]
    lines = {"kept": lambda rule: kept(p, q, rule), "paid": lambda rule: total_variation(emitted(p, q, rule), q)}
    plot(budgets, {name: [of(cactus(b)) for b in budgets] for name, of in lines.items()}, "budget in nats")
    result = [*out, kept(p, q, cactus(delta))]
