"""Layers of Gaussian heads on the overlaps of a prompt, in plain Python: exact at any width, and as fast at each.

Tokens are rows in coordinates of their own span. A Gaussian matrix sends n of them to n standard vectors in the span
and n in the rest of the d dimensions, of which only the products count: Bartlett's decomposition draws those.
"""

import math
import random


def product(A, B):
    columns = list(zip(*B, strict=True))
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in A]


def transpose(A):
    return list(zip(*A, strict=True))


def root(G):
    """Rows with these products, lower triangular."""
    C = [[0.0] * len(G) for _ in G]
    for i, row in enumerate(G):
        for j in range(i + 1):
            rest = row[j] - sum(C[i][k] * C[j][k] for k in range(j))
            C[i][j] = math.sqrt(max(rest, 1e-30)) if i == j else rest / C[j][j]
    return C


def standard(n, draw):
    return [[draw.gauss(0, 1) for _ in range(n)] for _ in range(n)]


def products_in(d, n, draw):
    """Rows with the products of n standard Gaussian vectors in d dimensions."""

    def entry(i, j):
        return draw.gauss(0, 1) if j < i else math.sqrt(draw.gammavariate((d - i) / 2, 2)) if j == i else 0.0

    return [[entry(i, j) for j in range(n)] for i in range(n)]


def softmax(row):
    weights = [math.exp(x - max(row)) for x in row]
    return [w / sum(weights) for w in weights]


def attend(x, d, deviation, draw):
    """The attention of one head whose logits have this deviation: A = W W' with Gaussian W and W'."""
    if not deviation:
        return [[1 / len(x)] * len(x)] * len(x)
    A = product(standard(len(x), draw), transpose(products_in(d, len(x), draw)))
    logits = product(product(x, A), transpose(x))
    return [softmax([deviation / math.sqrt(d) * logit for logit in row]) for row in logits]


def layer(x, d, deviation, h, heads, draw):
    """Add the mean of the heads, with the step sqrt(h heads), and normalise."""
    means = [product(attend(x, d, deviation, draw), x) for _ in range(heads)]
    side_by_side = [[a for mean in means for a in mean[i]] for i in range(len(x))]
    inside = [product(mean, standard(len(x), draw)) for mean in means]
    outside = product(side_by_side, products_in(d - len(x), heads * len(x), draw))
    step = math.sqrt(h / heads / d)
    moved = []
    for i, token in enumerate(x):
        pushed = [a + step * sum(push[i][k] for push in inside) for k, a in enumerate(token)]
        row = pushed + [step * a for a in outside[i]]
        length = math.sqrt(sum(a * a for a in row))
        moved.append([a / length for a in row])
    return root(product(moved, transpose(moved)))


def hot_layer(x, d, h, draw):
    """The same where attention is even, with any number of heads: one push for all tokens, along a Gaussian vector."""
    mean = [sum(column) / len(x) for column in transpose(x)]
    size = math.sqrt(h / d * sum(a * a for a in mean))
    push, outside = [draw.gauss(0, size) for _ in mean], size * math.sqrt(draw.gammavariate((d - len(x)) / 2, 2))
    moved = [[*(a + b for a, b in zip(token, push, strict=True)), outside] for token in x]
    lengths = [math.sqrt(sum(a * a for a in row)) for row in moved]
    moved = [[a / length for a in row] for row, length in zip(moved, lengths, strict=True)]
    return root(product(moved, transpose(moved)))


def overlap(x):
    """The mean over pairs of two tokens."""
    n = len(x)
    return (sum(sum(a) ** 2 for a in transpose(x)) - n) / n / (n - 1)


def simplex(n, R=0.0):
    return root([[1.0 if i == j else R for j in range(n)] for i in range(n)])


def moments(R, n, deviation, d=math.inf, samples=300, rows=6):
    """f and g of a prompt whose overlaps are all R: the mean of sum_k pi_ik^2 and of sum_k pi_ik pi_jk."""
    if not deviation:
        return 1 / n, 1 / n
    draw, f, g = random.Random(0), 0.0, 0.0
    for _ in range(samples):
        if d == math.inf:  # Gaussian logits; what a row has in common cancels
            shared = [draw.gauss(0, 1) for _ in range(n)]
            spread, near, far = deviation * math.sqrt(1 - R), math.sqrt(R), math.sqrt(1 - R)
            pi = [softmax([spread * (near * z + far * draw.gauss(0, 1)) for z in shared]) for _ in range(rows)]
        else:
            pi = attend(simplex(n, R), d, deviation, draw)
        own = sum(p * p for row in pi for p in row)
        f += own / len(pi) / samples
        g += (sum(sum(column) ** 2 for column in zip(*pi, strict=True)) - own) / len(pi) / (len(pi) - 1) / samples
    return f, g


def two_tokens(d, deviation, end, cells=240, reach=6.0, steps=400):
    """The mean overlap at the time ``end`` of two tokens that start at right angles: Fokker and Planck's equation of
    artanh R, in cells, with its two coefficients from samples at 21 values of R."""
    table = [moments(-1 + k / 10, 2, deviation, d) for k in range(21)]

    def coefficients(y):
        R = math.tanh(y)
        k = min(int(10 * (R + 1)), 19)
        f, g = (
            (k + 1 - 10 * (R + 1)) * a + (10 * (R + 1) - k) * b for a, b in zip(table[k], table[k + 1], strict=True)
        )
        P, S = R + (1 - R) * f, R + (1 - R) * g
        spread = 2 / d * max(P - R * S, 0.0) / (1 - R * R)
        return ((d - 2 + R * R) / d * S - (d - 1) / d * R * P) / (1 - R * R) + R * spread, spread

    width, dt = 2 * reach / cells, end / steps
    centres = [-reach + (k + 0.5) * width for k in range(cells)]
    speed = [coefficients(y - width / 2)[0] for y in centres]  # at the left edge of each cell
    spread = [coefficients(y)[1] for y in centres]
    p = [0.5 * (k in (cells // 2 - 1, cells // 2)) for k in range(cells)]
    for _ in range(steps):
        flux = [0.0] * (cells + 1)
        for k in range(1, cells):
            flux[k] = speed[k] * (p[k - 1] + p[k]) / 2 - (spread[k] * p[k] - spread[k - 1] * p[k - 1]) / 2 / width
        p = [a - dt / width * (flux[k + 1] - flux[k]) for k, a in enumerate(p)]
    return sum(a * math.tanh(y) for a, y in zip(p, centres, strict=True))


def drift(R, n, deviation):
    f, g = moments(R, n, deviation)
    return (1 - R) * (R * (1 - f) + g)


def wait(n, deviation, knots=10):
    """The time of the ODE from right angles to the overlap 1/2, by Simpson's rule in the root of the overlap."""
    weights, roots = [1, *[4, 2] * (knots // 2 - 1), 4, 1], [k / knots / math.sqrt(2) for k in range(knots + 1)]
    rates = [2 * s / drift(s * s, n, deviation) for s in roots]
    return sum(w * rate for w, rate in zip(weights, rates, strict=True)) / 3 / knots / math.sqrt(2)


def curve(n, deviation, end, steps):
    """The overlap along the ODE, from right angles."""
    rates = [drift(k / 20, n, deviation) for k in range(20)] + [0.0]

    def at(R):
        k = min(int(20 * R), 19)
        return rates[k] + (20 * R - k) * (rates[k + 1] - rates[k])

    found = [0.0]
    for _ in range(steps):
        middle = found[-1] + end / steps / 2 * at(found[-1])
        found.append(found[-1] + end / steps * at(middle))
    return found


def lengths(d, draw):
    """Of a standard Gaussian vector in d dimensions, and of a second one the parts along the first and across."""
    return math.sqrt(draw.gammavariate(d / 2, 2)), draw.gauss(0, 1), math.sqrt(draw.gammavariate((d - 1) / 2, 2))


def slow_step(R, h, d, factors, draw):
    """One layer of two tokens in a spread-out prompt at zero temperature: each receives V A x / |A x|, where A is a
    product of so many Gaussian matrices, or orthogonal."""
    cosine = R
    for _ in range(factors):
        own, along, across = lengths(d, draw)
        far = math.sqrt(1 - cosine * cosine)
        cosine = (cosine * own + far * along) / math.hypot(cosine * own + far * along, far * across)
    far, step = math.sqrt(max(0.0, 1 - cosine * cosine)), math.sqrt(h / d)
    (a, b), (e, f) = ([draw.gauss(0, 1), draw.gauss(0, 1)] for _ in range(2))
    own, along, across = lengths(d - 2, draw)
    x = (1 + step * a, step * b, step * own, 0.0)
    y = (
        R + step * (cosine * a + far * e),
        math.sqrt(1 - R * R) + step * (cosine * b + far * f),
        step * (cosine * own + far * along),
        step * far * across,
    )
    return max(-1.0, min(1.0, sum(p * q for p, q in zip(x, y, strict=True)) / math.hypot(*x) / math.hypot(*y)))
