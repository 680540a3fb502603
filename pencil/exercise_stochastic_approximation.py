"""sa-ex-join: the memory of all tokens of two memories.

A memory is a triple: the largest score s, the sum of exp(s_i - s) v_i, the sum of exp(s_i - s). One
token of score s and value v has (s, v, 1); no token at all has (-inf, 0, 0).
"""

import math
import random


def join(first, second): ...


# The check: softmax over all tokens, whatever the order in which their parts were joined.
def check():
    draw = random.Random(1)
    for size in (1.0, 100.0, 10_000.0):
        tokens = [(draw.gauss(0, size), draw.gauss(0, 1)) for _ in range(9)]
        top = max(s for s, _ in tokens)
        weights = [math.exp(s - top) for s, _ in tokens]
        wanted = sum(w * v for w, (_, v) in zip(weights, tokens)) / sum(weights)
        parts = [(s, v, 1.0) for s, v in tokens] + [(-math.inf, 0.0, 0.0)]
        while len(parts) > 1:
            one, two = (parts.pop(draw.randrange(len(parts))) for _ in range(2))
            joined = join(one, two)
            if joined is None:
                return "no answer yet"
            parts.append(joined)
        s, values, total = parts[0]
        if s != top or abs(values / total - wanted) > 1e-9:
            return f"not right: scores of size {size:g}"
    return "right"


print(check())
