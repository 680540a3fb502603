"""sp-ex-sine: the four Gaussian moments of phi(x) = sin(alpha x), in closed form.

Two coordinates u, v have variance q and covariance p. Return E phi(u)^2, E phi(u) phi(v), E phi'(u)^2
and E phi'(u) phi'(v).
"""

import math


def sine_moments(q, p, alpha): ...


# The check: sums over a grid of two independent normal numbers, which are exact to ten digits.
def moments(q, p, alpha):
    grid, found, weight = [k / 4 for k in range(-28, 29)], [0.0] * 4, 0.0
    for z in grid:
        for w in grid:
            u, v = math.sqrt(q) * z, p / math.sqrt(q) * z + math.sqrt(q - p * p / q) * w
            density = math.exp(-(z * z + w * w) / 2)
            phi, slope = math.sin(alpha * u), alpha * math.cos(alpha * u)
            terms = phi**2, phi * math.sin(alpha * v), slope**2, slope * alpha * math.cos(alpha * v)
            found, weight = [f + density * t for f, t in zip(found, terms)], weight + density
    return [f / weight for f in found]


def check():
    for q, p, alpha in ((1.0, 0.3, 0.5), (2.0, -0.7, 0.8), (0.5, 0.5, 1.2)):
        answer = sine_moments(q, p, alpha)
        if answer is None:
            return "no answer yet"
        for number, (mine, wanted) in enumerate(zip(answer, moments(q, p, alpha)), start=1):
            if abs(mine - wanted) > 1e-8:
                return f"not right: moment {number} at q = {q}, p = {p}, alpha = {alpha}"
    return "right"


print(check())
