"""Answers to the exercises of *Try it*: by chapter one that is right, and wrong ones that the check must refuse."""

import re


def answered(program: str, body: str) -> str:
    """The program of an exercise with a body in the place of the missing one."""
    filled, count = re.subn(r"^(def .*\)): \.\.\.$", lambda found: f"{found[1]}:{body}", program, flags=re.M)
    assert count == 1
    return filled


RIGHT = {
    "ols_attention": """
    from ols_attention import scale, solve, transpose
    n, size = len(X), range(len(X[0]))
    moment = scale(matmul(transpose(X), X), 1 / n)
    moment = [[moment[i][j] + ridge * (i == j) for j in size] for i in size]
    return scale(matmul(matmul(Xq, solve(moment, transpose(X))), Y), 1 / n)""",
    "signal_propagation": """
    near, far, twin = (math.exp(-(alpha**2) * v) / 2 for v in (q - p, q + p, 2 * q))
    return 0.5 - twin, near - far, alpha**2 * (0.5 + twin), alpha**2 * (near + far)""",
    "homogenized": """
    n = range(len(R))
    s = [[sum(pi[i][k] * R[k][l] * pi[j][l] for k in n for l in n) for j in n] for i in n]
    lost = [[(d - 1) * R[i][j] * (s[i][i] + s[j][j]) / 2 for j in n] for i in n]
    return [[((d - 2 + R[i][j] ** 2) * s[i][j] - lost[i][j]) / d for j in n] for i in n]""",
    "sinkhorn": """
    u, v = [0.0] * len(P), [0.0] * len(P[0])
    for _ in range(2000):
        u = [sum(p * (g - w) for p, g, w in zip(row, bar, v)) / sum(row) for row, bar in zip(P, P_bar)]
        columns = zip(zip(*P), zip(*P_bar))
        v = [sum(p * (g - w) for p, g, w in zip(row, bar, u)) / sum(row) for row, bar in columns]
    return [[p * (g - a - b) for p, g, b in zip(row, bar, v)] for row, bar, a in zip(P, P_bar, u)]""",
    "hierarchical_kernel": """
    import random
    draw = random.Random(0)
    x = [[draw.gauss(0, 1) for _ in range(d)] for _ in range(T)]
    before = layer(x)
    return any(layer([[a + (k == t) for a in row] for k, row in enumerate(x)])[:t] != before[:t] for t in range(T))""",
    "stochastic_approximation": """
    top = max(first[0], second[0])
    one, two = (math.exp(part[0] - top) for part in (first, second))
    return top, one * first[1] + two * second[1], one * first[2] + two * second[2]""",
    "in_place_ttt": """
    return taps | {2: 0.0}""",
    "cactus": """
    middle, width = 2 * q_n + delta, (delta**2 + 4 * delta * q_n * (1 - q_n)) ** 0.5
    return (middle + width) / (2 + 2 * delta)""",
    "task_ecologies": """
    best = [0.0]
    for U in range(1, len(costs)):
        rest, lowest = U & (U - 1), float("inf")
        B = rest
        while True:
            lowest = min(lowest, costs[U ^ rest | B] + best[rest ^ B])
            if B == 0:
                break
            B = (B - 1) & rest
        best.append(lowest)
    return best[-1]""",
    "geometric_tax": """
    counts = [0] * 4**k
    for strand in (g, [3 - letter for letter in reversed(g)]):
        for i in range(len(g) - k + 1):
            counts[sum(letter * 4 ** (k - 1 - j) for j, letter in enumerate(strand[i : i + k]))] += 1
    return counts""",
}
# By chapter: what to replace in the right answer, and by what.
WRONG = {
    "ols_attention": [("ridge * (i", "n * ridge * (i"), ("Xq, solve", "[[abs(a) for a in row] for row in Xq], solve")],
    "signal_propagation": [("near + far", "near - far"), ("0.5 - twin", "0.5")],
    "homogenized": [("(d - 2 + R", "(d - 1 + R"), ("(s[i][i] + s[j][j]) / 2", "s[i][j]")],
    "sinkhorn": [("g - a - b", "g - a"), ("p * (g - a - b)", "p * g")],
    "hierarchical_kernel": [("any(layer", "any(t == 3 and layer"), ("[:t] != before[:t]", " != before")],
    "stochastic_approximation": [
        ("one * first[2]", "first[2]"),
        ("part[0] - top", "0.0"),
        ("return top", "return first[0]"),
    ],
    "in_place_ttt": [("{2: 0.0}", "{}"), ("{2: 0.0}", "{1: 0.0, 2: 0.0}")],
    "cactus": [("(2 + 2 * delta)", "2"), ("delta**2 + ", "")],
    "task_ecologies": [("best[rest ^ B]", "(costs[rest ^ B])"), ("costs[U ^ rest | B]", "costs[U]")],
    "geometric_tax": [
        ("(g, [3 - letter for letter in reversed(g)])", "(g, g)"),
        ("reversed(g)", "g"),
        ("4 ** (k - 1 - j)", "4**j"),
    ],
}
