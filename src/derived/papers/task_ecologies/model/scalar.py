"""One step of microgpt in plain Python numbers: a witness for the ensemble, one scalar at a time.

symbol   name     meaning                                                     axes
theta    weights  name -> a matrix as lists of rows, as ``MicroGPT`` names it [out][in]
y        text     tokens, of which each but the last predicts the next        list of integers

A number knows the numbers that it was made of and its derivative in each of them; gradients are sums over paths,
collected backwards. No array library, no cleverness: 27,000 weights and eight tokens take seconds.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

EPS = 1e-5
Matrix = Sequence[Sequence["Number"]]


class Number:
    """A real number that remembers how it was made.

    >>> a, b = Number(3.0), Number(2.0)
    >>> (a * b + a).backward()
    >>> a.gradient, b.gradient
    (3.0, 3.0)
    """

    __slots__ = ("gradient", "parts", "value")

    def __init__(self, value: float, parts: tuple[tuple["Number", float], ...] = ()) -> None:
        self.value, self.parts, self.gradient = value, parts, 0.0

    def __add__(self, other: "Number") -> "Number":
        return Number(self.value + other.value, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other: "Number") -> "Number":
        return Number(self.value * other.value, ((self, other.value), (other, self.value)))

    def scaled(self, by: float) -> "Number":
        """This number times a constant."""
        return Number(self.value * by, ((self, by),))

    def backward(self) -> None:
        """Add to each number below this one the derivative of this one in it."""
        order, seen, stack = [], set(), [(self, False)]
        while stack:  # numbers after all that they are made of, without recursion
            one, done = stack.pop()
            if done:
                order.append(one)
            elif id(one) not in seen:
                seen.add(id(one))
                stack.append((one, True))
                stack.extend((part, False) for part, _ in one.parts)
        self.gradient = 1.0
        for one in reversed(order):
            for part, slope in one.parts:
                part.gradient += slope * one.gradient


def dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    """sum_i a_i b_i."""
    value = sum(x.value * y.value for x, y in zip(a, b, strict=True))
    return Number(value, tuple(pair for x, y in zip(a, b, strict=True) for pair in ((x, y.value), (y, x.value))))


def times(x: Sequence[Number], weight: Matrix) -> list[Number]:
    """A matrix times a vector."""
    return [dot(row, x) for row in weight]


def plus(x: Sequence[Number], y: Sequence[Number]) -> list[Number]:
    """A sum of vectors."""
    return [a + b for a, b in zip(x, y, strict=True)]


def norm(x: Sequence[Number]) -> list[Number]:
    """x over its root mean square."""
    square = dot(x, x)
    mean = square.value / len(x) + EPS
    scale = Number(mean**-0.5, ((square, -0.5 * mean**-1.5 / len(x)),))
    return [each * scale for each in x]


def relu(x: Number) -> Number:
    """max(x, 0)."""
    return x if x.value > 0 else Number(0.0, ((x, 0.0),))


def softmax(scores: Sequence[Number]) -> list[Number]:
    """exp(s_i) / sum_j exp(s_j)."""
    top = max(each.value for each in scores)
    powers = [Number(math.exp(each.value - top), ((each, math.exp(each.value - top)),)) for each in scores]
    total = sum(each.value for each in powers)
    inverse = Number(1 / total, tuple((each, -1 / total**2) for each in powers))
    return [each * inverse for each in powers]


def surprise(scores: Sequence[Number], token: int) -> Number:
    """-ln softmax(scores)[token]."""
    share = softmax(scores)[token]
    return Number(-math.log(share.value), ((share, -1 / share.value),))


def scalar_loss(weights: Mapping[str, Matrix], text: Sequence[int], heads: int) -> Number:
    """The mean cross-entropy of one text under one model, (1/T) sum_t -ln p(y_(t+1) | y_1 ... y_t)."""
    depth, width = sum(name.startswith("qkv") for name in weights), len(weights["token"][0])
    seen: list[list[tuple[list[Number], list[Number]]]] = [[] for _ in range(depth)]
    total = Number(0.0)
    for place, (token, following) in enumerate(pairwise(text)):
        x = norm(plus(weights["token"][token], weights["position"][place]))
        for i in range(depth):
            qkv = times(norm(x), weights[f"qkv{i}"])
            seen[i].append((qkv[width : 2 * width], qkv[2 * width :]))
            mixed = [each for h in range(heads) for each in _head(qkv[:width], seen[i], h, width // heads)]
            x = plus(x, times(mixed, weights[f"out{i}"]))
            hidden = [relu(each) for each in times(norm(x), weights[f"up{i}"])]
            x = plus(x, times(hidden, weights[f"down{i}"]))
        total = total + surprise(times(x, weights["output"]), following)
    return total.scaled(1 / (len(text) - 1))


def _head(query: Sequence[Number], seen: Sequence[tuple], head: int, size: int) -> list[Number]:
    """What one head reads from the tokens so far."""
    part = slice(head * size, (head + 1) * size)
    shares = softmax([dot(query[part], key[part]).scaled(size**-0.5) for key, _ in seen])
    return [dot(shares, [value[part][j] for _, value in seen]) for j in range(size)]
