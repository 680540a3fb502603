"""hkt-ex-detector: whether some row of a layer's output depends on a later token.

`layer` takes T tokens, each a list of d numbers, to T rows of numbers. Return True or False.
"""

from hierarchical_kernel import averages, block_means
from hierarchical_kernel import layer as heads


def has_leak(layer, T, d): ...


# The check: layers that leak a little, late or in one row, and causal ones, some of them odd.
def pyramid(summarise):
    return lambda x: heads(x, [[[0.5, 0.1], [-0.2, 0.3]]] * 2, [0.6, 0.4], summarise)


def peeks(rows, size):
    """Each token as it is, but in some rows a little of the next one."""
    return lambda x: [[a + size * (i in rows) * b for a, b in zip(x[i], (x + x)[i + 1])] for i in range(len(x))]


CASES = {
    "a running sum": (lambda x: [[sum(map(sum, x[: i + 1]))] for i in range(len(x))], False),
    "a constant": (lambda x: [[1.0]] * len(x), False),
    "the first token everywhere": (lambda x: [x[0]] * len(x), False),
    "the causal pyramid": (pyramid(averages), False),
    "means of blocks": (pyramid(block_means), True),
    "a leak in every row but the last": (peeks(range(7), 1.0), True),
    "a small leak in the last pair": (peeks([6], 1e-6), True),
    "a leak in one early row": (peeks([1], 0.1), True),
}


def check():
    for name, (layer, leaks) in CASES.items():
        answer = has_leak(layer, 8, 2)
        if answer is None:
            return "no answer yet"
        if answer != leaks:
            return f"not right: {name}"
    return "right"


print(check())
