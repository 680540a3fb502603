"""How gradients grow through a transformer at initialisation, in plain Python.

q   second moment of the stream, p   overlap of two tokens, rho = p / q        n   tokens, math.inf for many
a   variance that uniform attention adds, s   variance of the MLP            phi   what stands before each branch
J   squared size of an input gradient for each unit at the output, K   the same for pairs of tokens

Two numbers go forward, two come back. With LayerNorm J grows like a power of the depth, with a saturating function of
each coordinate like the exponential of its square root.
"""

import math


def layer_norm(q, p):
    """E phi(u)^2, E phi(u) phi(v), E phi'(u)^2, E phi'(u) phi'(v) for a stream divided by its size."""
    return 1.0, p / q, 1 / q, 1 / q


def erf(alpha):
    """The same four numbers for phi(x) = erf(alpha x) on Gaussian u, v of variance q and covariance p."""

    def moments(q, p):
        D, c = 1 + 2 * alpha**2 * q, 4 * alpha**2 / math.pi
        return (
            2 / math.pi * math.asin(2 * alpha**2 * q / D),
            2 / math.pi * math.asin(2 * alpha**2 * p / D),
            c / math.sqrt(1 + 4 * alpha**2 * q),
            c / math.sqrt(D**2 - 4 * alpha**4 * p**2),
        )

    return moments


def relu(rho):
    """E ReLU(u) ReLU(v) and E 1[u > 0] 1[v > 0] for unit variances and correlation rho."""
    rho = max(-1.0, min(1.0, rho))
    angle = math.pi - math.acos(rho)
    return (math.sqrt(1 - rho**2) + rho * angle) / (2 * math.pi), angle / (2 * math.pi)


def forward(q, p, phi, a, s, n, depth):
    """(q, p) before each half block, 2 depth + 1 of them: attention, MLP, attention, ..."""
    course = [(q, p)]
    for _ in range(depth):
        second, overlap, _, _ = phi(q, p)
        gain = a * (overlap + (second - overlap) / n)
        q, p = q + gain, p + gain
        course.append((q, p))
        second, overlap, _, _ = phi(q, p)
        q, p = q + s / 2 * second, p + s * second * relu(overlap / second)[0]
        course.append((q, p))
    return course


def backward(course, phi, a, s, n, pooled=False):
    """J at every block, from the input to the output, for independent output gradients or one that all tokens share."""
    J, K, found = 1.0, float(pooled), [1.0]
    for block in reversed(range(len(course) // 2)):
        second, overlap, slope, cross = phi(*course[2 * block + 1])
        J, K = (1 + s / 2 * slope) * J, (1 + s * relu(overlap / second)[1] * cross) * K
        _, _, slope, cross = phi(*course[2 * block])
        shared = J / n + K * (1 - 1 / n)  # uniform attention spreads a gradient over all tokens
        J, K = J + a * slope * shared, K + a * cross * shared
        found.append(J)
    return found[::-1]


def growth(phi, a, s, n, depth, q=1.0, p=0.2, pooled=False):
    """J from the output of a network to its input."""
    return backward(forward(q, p, phi, a, s, n, depth), phi, a, s, n, pooled)[0]


def exponent(phi, a, s, n, depth, by=math.log):
    """The slope of ln J against by(depth), from half the depth to the depth."""
    one, two = growth(phi, a, s, n, depth // 2), growth(phi, a, s, n, depth)
    return math.log(two / one) / (by(depth) - by(depth // 2))


def main():
    telescope = math.prod(1 + 1 / b for b in range(1, 16))
    print(f"fifteen blocks by hand: LayerNorm {telescope:.0f},", end=" ")
    print(f"saturating {math.prod(1 + 1 / math.sqrt(b) for b in range(1, 16)):.0f}")
    a, s = 1.0, 1.0
    print(f"LayerNorm, many tokens: exponent {exponent(layer_norm, a, s, math.inf, 40_000):.4f},", end=" ")
    print(f"theory {s / 2 / (s / 2 + a):.4f}")
    for depth in (10, 100, 1000):
        line = ", ".join(f"alpha {alpha}: {growth(erf(alpha), a, s, math.inf, depth):.3g}" for alpha in (0.2, 0.5, 1.0))
        print(f"{depth:5d} blocks: LayerNorm {growth(layer_norm, a, s, math.inf, depth):.3g}; erf, {line}")


if __name__ == "__main__":
    main()
