"""Draft and verify, exactly and with a budget, in plain Python.

p   distribution of the draft, a list of V probabilities        q   that of the verifier
n   a drafted token        gamma[n]   up to which probability it is raised, q[n] <= gamma[n] <= 1
h   target of a drafted token: gamma[n] at n, the rest of q shrunk in proportion

Draft n from p, keep it with probability min(1, gamma[n] / p[n]), else draw from the part of h above p. With gamma = q
this is speculative sampling. Cactus raises gamma by a budget delta; what comes out lies between draft and verifier.
"""

import math
import random


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


def main():
    q, p = [1 / 3, 1 / 3, 1 / 3], [1 / 2, 1 / 2, 0.0]
    for name, rule in (("exact ", exact), ("Cactus", cactus(1 / 16))):
        print(f"{name}: kept {kept(p, q, rule):.4f}, emitted {[round(w, 4) for w in emitted(p, q, rule)]}")
    print(f"the target of token 1 costs {kl(target(q, 0, 1 / 2), q):.4f} of its budget 0.0625 nats;", end=" ")
    print(f"the emitted distribution is {kl(emitted(p, q, cactus(1 / 16)), q):.4f} nats from the verifier")
    generator = random.Random(0)
    drawn = [sample(p, q, exact, generator) for _ in range(30_000)]
    print("30,000 exact samples:", [round(sum(t == k for t, _ in drawn) / len(drawn), 3) for k in range(3)])
    print(f"budget 0.1: the rule spends up to {largest_divergence(0.1):.4f}, ln(1.2) = {math.log(1.2):.4f}")


if __name__ == "__main__":
    main()
