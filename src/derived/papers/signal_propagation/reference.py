"""How gradients grow through a transformer at initialisation, in plain Python.

q   second moment of the stream, p   overlap of two tokens               n   tokens, math.inf for many
a   variance that attention adds, s  variance of the MLP               phi   what stands before each branch
J   squared size of an input gradient for each unit at the output, K   the same for pairs of tokens
sigma   sharpness of attention, sigma_Q sigma_K; 0 averages all tokens alike

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


def attention(q, p, n, sigma):
    """Shares that reach q, p, J from J, J from K, K from J and K from K: uniform, and the first order in sigma^2."""
    own, e = 1 / n, sigma**2 * (q - p)
    rest = 1 - own
    forward = own * (1 + e * rest * q), own * (1 + e * rest * p)
    to_J = own * (1 + e * rest * (3 * q - p)), rest * (1 + 2 * e * rest * p)
    return *forward, *to_J, own * (1 - 2 * e * own * q), rest * (1 + e * own * (q - 3 * p))


def forward(q, p, phi, a, s, n, depth, sigma=0.0):
    """(q, p) before each half block, 2 depth + 1 of them: attention, MLP, attention, ..."""
    course = [(q, p)]
    for _ in range(depth):
        second, overlap, _, _ = phi(q, p)
        f, g, *_ = attention(second, overlap, n, sigma)
        q, p = q + a * (overlap + (second - overlap) * f), p + a * (overlap + (second - overlap) * g)
        course.append((q, p))
        second, overlap, _, _ = phi(q, p)
        q, p = q + s / 2 * second, p + s * second * relu(overlap / second)[0]
        course.append((q, p))
    return course


def backward(course, phi, a, s, n, pooled=False, sigma=0.0):
    """J at every block, from the input to the output, for independent output gradients or one that all tokens share."""
    J, K, found = 1.0, float(pooled), [1.0]
    for block in reversed(range(len(course) // 2)):
        second, overlap, slope, cross = phi(*course[2 * block + 1])
        J, K = (1 + s / 2 * slope) * J, (1 + s * relu(overlap / second)[1] * cross) * K
        second, overlap, slope, cross = phi(*course[2 * block])
        _, _, JJ, JK, KJ, KK = attention(second, overlap, n, sigma)
        J, K = J + a * slope * (JJ * J + JK * K), K + a * cross * (KJ * J + KK * K)
        found.append(J)
    return found[::-1]


def growth(phi, a, s, n, depth, q=1.0, p=0.2, pooled=False, sigma=0.0):
    """J from the output of a network to its input."""
    return backward(forward(q, p, phi, a, s, n, depth, sigma), phi, a, s, n, pooled, sigma)[0]


def text_plot(x, curves, label=""):
    """Print one or two curves over x."""
    low, high = (end(v for y in curves.values() for v in y) for end in (min, max))
    print(", ".join(f"{mark} {name}" for mark, name in zip("ox", curves)), f"from {low:.3g} to {high:.3g}; {label}")
    for k in range(0, len(x), -(-len(x) // 12)):
        at = {round(40 * (y[k] - low) / (high - low or 1)): mark for mark, y in zip("ox", curves.values())}
        print(f"{x[k]:8.3g} |", *(at.get(column, " ") for column in range(41)), sep="")


plot = globals().get("plot", text_plot)  # the book's page draws it

if __name__ == "__main__":
    # How much larger a gradient is at the input than at the output of a deep network at initialisation.
    # - Halve `alpha`: the gradient of the saturating network shrinks, at a thousand blocks by orders of magnitude.
    # - Set `mixing` to 0: with LayerNorm the gradient now grows in proportion to the depth.
    # - Set `tokens` to 8 and `sharpness` to 1: few tokens and sharp attention raise both curves.

    alpha = 0.5  # slope of erf(alpha x), which stands in place of LayerNorm
    mixing, mlp = 1.0, 1.0  # variances that the two branches add
    tokens, sharpness = math.inf, 0.0

    depths = [round(10 ** (k / 6)) for k in range(19)]
    sizes = mixing, mlp, tokens
    norm = [growth(layer_norm, *sizes, depth, sigma=sharpness) for depth in depths]
    saturating = [growth(erf(alpha), *sizes, depth, sigma=sharpness) for depth in depths]
    for depth, one, other in list(zip(depths, norm, saturating))[::6]:
        print(f"{depth:5d} blocks: LayerNorm {one:8.4g}   erf {other:8.4g}")

    plot(
        [math.log10(depth) for depth in depths],
        {"LayerNorm": [math.log10(J) for J in norm], "erf": [math.log10(J) for J in saturating]},
        "log10 of the depth; log10 of J",
    )
    result = [norm[-1], saturating[-1]]
