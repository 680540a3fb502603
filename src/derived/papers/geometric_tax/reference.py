"""What a label without order costs, in plain Python.

X, Y    clouds of n points in p dimensions that correspond row by row        D   Procrustes distortion, between 0 and 1
K       bins of a number in [0, 1]        sigma   noise of the number        Lambda   length of its label's path

D is what is left of the distance of two clouds after centring, scaling and the best rotation. The label of a number
that moves from 0 to 1 runs through a long path when bins are finer than the noise: a staircase, pi a step.
"""

import math


def centred(X):
    """The cloud with mean zero and size one."""
    means = [sum(column) / len(X) for column in zip(*X)]
    X = [[x - m for x, m in zip(row, means)] for row in X]
    size = math.sqrt(sum(x * x for row in X for x in row))
    return [[x / size for x in row] for row in X]


def product(X, Y):
    """X' Y, p x p."""
    return [[sum(x[i] * y[j] for x, y in zip(X, Y)) for j in range(len(Y[0]))] for i in range(len(X[0]))]


def singular_values(M):
    """By one-sided Jacobi rotations: turn pairs of columns until all are at right angles; their lengths are left."""
    columns = [list(column) for column in zip(*M)]
    for _ in range(60):
        for i in range(len(columns)):
            for j in range(i):
                a, b = (sum(x * x for x in columns[k]) for k in (i, j))
                c = sum(x * y for x, y in zip(columns[i], columns[j]))
                if abs(c) > 1e-17 * math.sqrt(a * b) > 0:
                    angle = math.atan2(2 * c, a - b) / 2
                    cos, sin = math.cos(angle), math.sin(angle)
                    u = [cos * x + sin * y for x, y in zip(columns[i], columns[j])]
                    v = [cos * y - sin * x for x, y in zip(columns[i], columns[j])]
                    columns[i], columns[j] = u, v
    return sorted((math.sqrt(sum(x * x for x in column)) for column in columns), reverse=True)


def distortion(X, Y):
    """D = sqrt(1 - nuclear norm of X' Y), for centred clouds of size one."""
    return math.sqrt(max(0.0, 1 - sum(singular_values(product(centred(X), centred(Y))))))


def noise_law(s):
    """D of a large cloud and the same with noise of s times its variance."""
    return math.sqrt(1 - (1 + s) ** -0.5)


def jump_and_spread(X, Y, struck):
    """Mean square jump of the struck rows, and the variance of the rows before."""
    means = [sum(column) / len(X) for column in zip(*X)]
    J = sum((x - y) ** 2 for k in struck for x, y in zip(X[k], Y[k])) / len(struck)
    return J, sum((x - m) ** 2 for row in X for x, m in zip(row, means)) / len(X)


def one_hot(k, K):
    return [float(i == k) for i in range(K)]


def normal_cdf(z):
    return math.erfc(-z / math.sqrt(2)) / 2


def label_distribution(m, K, sigma):
    """The distribution over K bins of a number with mean m; the outer bins reach to infinity."""
    edges = [normal_cdf((k / K - m) / sigma) for k in range(1, K)]
    return [b - a for a, b in zip([0.0, *edges], [*edges, 1.0])]


def fisher_rao_length(K, sigma, steps=20_000):
    """The length of the label's path from m = 0 to m = 1: arcs on the sphere of square roots, added up."""
    total, before = 0.0, [math.sqrt(max(p, 0.0)) for p in label_distribution(0.0, K, sigma)]
    for step in range(1, steps + 1):
        now = [math.sqrt(max(p, 0.0)) for p in label_distribution(step / steps, K, sigma)]
        chord = math.sqrt(sum((a - b) ** 2 for a, b in zip(before, now)))
        total, before = total + 4 * math.asin(min(1.0, chord / 2)), now
    return total


def staircase(K, sigma):
    """The two bounds between which the length lies."""
    low = (K - 1) * (4 * math.asin(math.sqrt(normal_cdf(1 / (2 * K * sigma)))) - math.pi)
    return low, min(math.pi * (K - 1), 1 / sigma)


def text_plot(x, curves, label=""):
    """Print one or two curves over x."""
    low, high = (end(v for y in curves.values() for v in y) for end in (min, max))
    print(", ".join(f"{mark} {name}" for mark, name in zip("ox", curves)), f"from {low:.3g} to {high:.3g}; {label}")
    for k in range(0, len(x), -(-len(x) // 12)):
        at = {round(40 * (y[k] - low) / (high - low or 1)): mark for mark, y in zip("ox", curves.values())}
        print(f"{x[k]:8.3g} |", *(at.get(column, " ") for column in range(41)), sep="")


plot = globals().get("plot", text_plot)  # the book's page draws it

if __name__ == "__main__":
    # A number is sorted into bins. If bins are finer than the noise, its label walks a long path.
    # - Raise `K` to 64: the path grows towards 1 / sigma, and no further.
    # - Set `wrong` to 3: the one-hot code jumps as far as before, the ordered code nine times as far.

    K = 8  # bins of a number in [0, 1]
    sigma = 0.05  # its noise
    wrong = 1  # the class 0 of four is read as this one

    low, high = staircase(K, sigma)
    print(f"{K} bins, noise {sigma}: {low:.3f} <= {fisher_rao_length(K, sigma, 2000):.3f} <= {high:.3f}")
    found = []
    for name, code in ("ordered", lambda k: [float(k)]), ("one-hot", lambda k: one_hot(k, 4)):
        X, Y = ([code(k) for k in values] for values in (range(4), [wrong, 1, 2, 3]))
        D, (J, V) = distortion(X, Y), jump_and_spread(X, Y, [0])
        print(f"0 read as {wrong}, {name}: D = {D:.3f}; jump {J:g} over spread {V:g}: {noise_law(J / 4 / V):.3f}")
        found.append(D)

    bins = range(2, 33, 3)
    path = [fisher_rao_length(k, sigma, 500) for k in bins]
    plot(bins, {"length of the path": path, "1 / sigma": [1 / sigma] * len(bins)}, "bins")
    result = [*found, low, high]
