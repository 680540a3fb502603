"""ListOps: nested lists of MIN, MAX, MED and SM over digits; the exact distribution of trees, evaluators, shallow predictors.

symbol       name            meaning
tree         Tree            a digit 0 .. 9, or (operator, (tree, ...))
operators    OPERATORS       MIN, MAX, MED (middle value, the mean of two floored), SM (sum modulo 10)
code         VOCABULARY      0 padding, 1 .. 10 the digits 0 .. 9, 11 .. 14 the openers [MIN .. [SM, 15 the closer ]
length       length          symbols of a tree: 1 for a digit, else 2 + its arguments'
r            branch          a node above max_depth is an operator with this probability, else a digit

tree(depth) = a uniform digit with probability 1 - branch, or always at max_depth; otherwise n arguments, n uniform in
2 .. max_args, each tree(depth + 1), under a uniform operator. Kept if min_length < length < max_length; depth starts at
1. The constants of Long Range Arena are branch 1/4, max_depth 10, max_args 10, 500 and 2000. [repo]
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from derived.lab.checks import check_count, check_within

from .forest import CLOSE, DIGIT, OPEN, Grammar, sample_forest
from .sequences import Data

Tree = int | tuple[str, tuple]
OPERATORS = ("MIN", "MAX", "MED", "SM")
SYMBOLS = ("PAD", *"0123456789", *(f"[{name}" for name in OPERATORS), "]")
VOCABULARY = len(SYMBOLS)
CODES = {symbol: code for code, symbol in enumerate(SYMBOLS)}


# --- trees, symbols, values ---------------------------------------------------------------------------------------


def apply(operator: str, values: Sequence[int]) -> int:
    """The value of an operator on digits, at least one."""
    ordered, n = sorted(values), len(values)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) // 2
    return {"MIN": ordered[0], "MAX": ordered[-1], "MED": middle, "SM": sum(values) % 10}[operator]


def parse(codes: Sequence[int]) -> Tree:
    """The tree of a sequence of codes, padding on the right allowed.

    Raises ValueError, with the place, for an unknown code, a symbol after the end, an operator without arguments, and
    lists that are never closed or never opened.
    """
    codes = _without_padding(codes)
    open_lists: list[tuple[str, list]] = []
    for place, code in enumerate(codes):
        if OPEN <= code < CLOSE:
            open_lists.append((OPERATORS[code - OPEN], []))
            continue
        if code == CLOSE:
            if not open_lists:
                raise ValueError(f"symbol {place} closes a list that was never opened; drop this ]")
            operator, arguments = open_lists.pop()
            if not arguments:
                raise ValueError(f"symbol {place} closes [{operator} without arguments; give at least one")
            tree: Tree = (operator, tuple(arguments))
        elif DIGIT <= code < OPEN:
            tree = int(code) - DIGIT
        else:
            raise ValueError(f"symbol {place} has code {code}; give codes 1 to {CLOSE}, and 0 only after the end")
        if open_lists:
            open_lists[-1][1].append(tree)
        elif place + 1 < len(codes):
            raise ValueError(f"the expression ends at symbol {place} of {len(codes)}; give one expression")
        else:
            return tree
    unclosed = len(open_lists)
    raise ValueError(f"{unclosed} list(s) are never closed; add {unclosed} ]" if unclosed else "no symbol; give some")


def _without_padding(codes: Sequence[int]) -> list[int]:
    codes = codes.tolist() if isinstance(codes, Tensor | np.ndarray) else list(codes)
    while codes and codes[-1] == 0:
        codes.pop()
    return codes


def evaluate_tokens(codes: Sequence[int]) -> int:
    """The value of an expression given as codes; 0 pads on the right.

    ValueError for unknown codes, operators without arguments and expressions that are not whole. [ours]

    >>> evaluate_tokens(from_text("[MAX 2 9 [MIN 4 7 ] ]"))
    9
    """
    return _value(parse(codes))


def _value(tree: Tree) -> int:
    return tree if isinstance(tree, int) else apply(tree[0], [_value(argument) for argument in tree[1]])


def from_text(text: str) -> list[int]:
    """Codes of symbols between blanks, round brackets of the curried form are skipped.

    ValueError for an unknown symbol or an expression that is not whole. [repo: the text form]

    >>> from_text("[MAX 2 ( 9 ) ]")
    [12, 3, 10, 15]
    """
    words = text.replace("(", " ").replace(")", " ").split()
    unknown = next((word for word in words if word not in CODES or word == "PAD"), None)
    if unknown is not None:
        raise ValueError(f"symbol {unknown!r} is unknown; use digits, [MIN, [MAX, [MED, [SM and ]")
    codes = [CODES[word] for word in words]
    parse(codes)
    return codes


# --- the distribution of trees ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ListOps:
    """The distribution of nested lists of Long Range Arena's generator; its defaults are our short range (100 < T < 512).

    A node is a list with probability ``branch`` above ``max_depth``, else a uniform digit; a list has 2 to ``max_args``
    arguments and a uniform operator; an expression is kept if min_length < length < max_length. ``distinct`` discards
    expressions that were drawn before, as the original does. ValueError for sizes below those, a branch outside [0, 1]
    and a range that no tree meets. [repo: the generator; ours: the range]

    >>> drawn = ListOps(min_length=8, max_length=25).sample(2, torch.Generator())
    >>> [evaluate_tokens(row) == label for row, label in zip(drawn.tokens, drawn.labels.tolist())]
    [True, True]
    """

    max_depth: int = 10
    max_args: int = 10
    branch: float = 0.25
    min_length: int = 100
    max_length: int = 512
    distinct: bool = True

    def __post_init__(self) -> None:
        check_count("max_depth", self.max_depth, 2)
        check_count("max_args", self.max_args, 2)
        check_count("min_length", self.min_length, 0)
        check_within("branch", self.branch, 0.0, 1.0)
        longest = 1  # of a tree at depth max_depth; one level up it is 2 + max_args of these
        for _ in range(self.max_depth - 1):
            longest = 2 + self.max_args * longest
        shortest = self.min_length + 1 if self.branch else 1
        if not self.min_length + 1 < self.max_length or shortest > longest:
            raise ValueError(
                f"no tree of depth {self.max_depth} has {self.min_length} < length < {self.max_length}; "
                f"give a range that holds an integer and lengths up to {longest}"
            )

    def sample(self, num: int, generator: torch.Generator) -> Data:
        """``num`` labelled expressions, padded to max_length - 1; a whole batch of trees at a time.

        Shapes are drawn first, generation by generation, and a tree is dropped as soon as its nodes exceed the range:
        operators and digits do not depend on the shape, so the distribution is that of drawing trees one by one.
        """
        check_count("num", num)
        grammar = Grammar(self.max_depth, self.max_args, self.branch, self.min_length, self.max_length)
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        drawn = sample_forest(grammar, num, self.distinct, np.random.default_rng(seed))
        return Data(*(torch.from_numpy(each.astype(np.int64)) for each in drawn))
