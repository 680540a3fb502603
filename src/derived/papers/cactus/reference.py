"""Draft and verify, exactly and with a budget, in plain Python.

p   distribution of the draft, a list of V probabilities        q   that of the verifier
n   a drafted token        gamma[n]   up to which probability it is raised, q[n] <= gamma[n] <= 1
h   target of a drafted token: gamma[n] at n, the rest of q shrunk in proportion

Draft n from p, keep it with probability min(1, gamma[n] / p[n]), else draw from the part of h above p. With gamma = q
this is speculative sampling. Cactus raises gamma by a budget delta; what comes out lies between draft and verifier.
"""

import math


def exact(q, n):
    return q[n]


def cactus(delta):
    """The rule with budget delta, in nats: the second-order solution of KL(h | q) <= delta."""
    return lambda q, n: min(1.0, q[n] + math.sqrt(2 * delta * q[n] * (1 - q[n])))


def target(q, n, gamma):
    if q[n] == 1:
        return list(q)
    return [gamma if i == n else w * (1 - gamma) / (1 - q[n]) for i, w in enumerate(q)]


def kl(h, q):
    """KL(h | q) in nats; infinite where h has a token that q excludes."""
    if any(a > 0 and b == 0 for a, b in zip(h, q)):
        return math.inf
    return sum(a * math.log(a / b) for a, b in zip(h, q) if a > 0)


def total_variation(p, q):
    return sum(abs(a - b) for a, b in zip(p, q)) / 2


def kept(p, q, rule):
    """The probability that a draft is kept."""
    return sum(min(w, rule(q, n)) for n, w in enumerate(p))


def emitted(p, q, rule):
    """The distribution of the token that is written."""
    out = [min(w, rule(q, n)) for n, w in enumerate(p)]
    for n, w in enumerate(p):
        gamma = rule(q, n)
        if w > gamma:  # the draft may be turned down: what is written then
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


def largest_divergence(delta, points=10_000):
    """The largest KL(h | q) that the rule spends over a grid of q[n]; ln(1 + 2 delta) is the sharp bound."""
    rule, worst = cactus(delta), 0.0
    for k in range(1, points):
        q = [k / points, 1 - k / points]
        worst = max(worst, kl(target(q, 0, rule(q, 0)), q))
    return worst


def optimal(q, n, delta):
    """The best gamma under KL(h | q) <= delta, by bisection."""
    if kl(target(q, n, 1.0), q) <= delta:
        return 1.0
    low, high = q[n], 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if kl(target(q, n, middle), q) <= delta else (low, middle)
    return low


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
    # - Move the draft away, `p = [0.05, 0.05, 0.9]`: less is kept, and each kept draft costs more.

    q = [0.5, 0.3, 0.2]  # verifier
    p = [0.2, 0.3, 0.5]  # draft
    delta = 0.1  # budget in nats

    rule = cactus(delta)
    out = emitted(p, q, rule)
    print(f"kept: {kept(p, q, exact):.4f} exactly, {kept(p, q, rule):.4f} with the budget")
    print("written:", [round(w, 4) for w in out], f"{kl(out, q):.4f} nats from the verifier")
    print(f"gained {kept(p, q, rule) - kept(p, q, exact):.4f}, paid {total_variation(out, q):.4f} in total variation")

    budgets = [k / 100 for k in range(51)]
    plot(
        budgets,
        {
            "kept": [kept(p, q, cactus(b)) for b in budgets],
            "total variation": [total_variation(emitted(p, q, cactus(b)), q) for b in budgets],
        },
        "budget in nats",
    )
    result = [*out, kept(p, q, rule)]
