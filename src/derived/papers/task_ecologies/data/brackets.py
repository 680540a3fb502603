"""Bracketed expressions in chunks, and three ways to spoil a chunk.

expr := "(" word (" " (word | expr))+ ")"        words from a Zipf lexicon of random strings

name      what is done to a balanced chunk
shuffled  its brackets change places among themselves until it is unbalanced (as the published control)
matched   one ")" moves from behind a word to behind an earlier word outside all brackets: unbalanced, though every pair
          of neighbouring symbols is one that balanced text has
blanked   brackets become spaces

depth     opened less closed brackets so far; balanced: never negative, zero at the end
"""

import torch
from jaxtyping import Int
from torch import Tensor

from derived.lab.checks import check_count

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SYMBOLS = LETTERS + "() "
OPENING = len(SYMBOLS)  # the token that opens a text
VOCABULARY = len(SYMBOLS) + 1
# How deep and how wide expressions are: words of the lexicon, letters of a word, arguments, and how often they nest.
WORDS, LONGEST_WORD, MOST_ARGUMENTS, NESTED, DEEPEST = 80, 6, 3, 0.45, 6


def is_balanced(chunk: str) -> bool:
    """Whether the depth is never negative and ends at zero.

    >>> is_balanced("b (a)"), is_balanced("b) (a")
    (True, False)
    """
    depth = 0
    for each in chunk:
        depth += (each == "(") - (each == ")")
        if depth < 0:
            return False
    return depth == 0


def expression_text(length: int, generator: torch.Generator) -> str:
    """At least ``length`` characters of expressions, one after the other with a space between."""
    check_count("length", length)
    uniform = _uniforms(generator)
    lexicon = [
        "".join(LETTERS[int(26 * next(uniform))] for _ in range(2 + int((LONGEST_WORD - 1) * next(uniform))))
        for _ in range(WORDS)
    ]
    shares = torch.arange(1, WORDS + 1, dtype=torch.float64).reciprocal()
    ranks = (shares / shares.sum()).cumsum(dim=0).tolist()

    def word() -> str:
        u = next(uniform)
        return lexicon[next((i for i, edge in enumerate(ranks) if u <= edge), WORDS - 1)]

    def expression(depth: int) -> str:
        parts = [word()]
        for _ in range(1 + int(MOST_ARGUMENTS * next(uniform))):
            deeper = depth < DEEPEST and next(uniform) < NESTED
            parts.append(expression(depth + 1) if deeper else word())
        return f"({' '.join(parts)})"

    found, total = [], 0
    while total < length:
        found.append(expression(1))
        total += len(found[-1]) + 1
    return " ".join(found)


def balanced_chunks(text: str, length: int = 30, stride: int = 5) -> list[str]:
    """The chunks that are balanced and hold a bracket of each kind."""
    pieces = (text[start : start + length] for start in range(0, len(text) - length + 1, stride))
    return [piece for piece in pieces if "(" in piece and is_balanced(piece)]


def shuffled_twin(chunk: str, generator: torch.Generator, tries: int = 100) -> str | None:
    """The chunk with its brackets in another order, unbalanced; None where no try found one."""
    places = [i for i, each in enumerate(chunk) if each in "()"]
    for _ in range(tries):
        order = torch.randperm(len(places), generator=generator).tolist()
        letters = list(chunk)
        for place, source in zip(places, order, strict=True):
            letters[place] = chunk[places[source]]
        if not is_balanced("".join(letters)):
            return "".join(letters)
    return None


def matched_twin(chunk: str, generator: torch.Generator) -> str | None:
    """The chunk with one ")" moved behind an earlier word outside all brackets; None where there is no such word.

    >>> matched_twin("ab cd (ef gh)", torch.Generator().manual_seed(0))
    'ab) cd (ef gh'
    """
    # A closing bracket behind a letter, with a space or nothing behind it: taken away, letter and space meet
    behind = lambda i: chunk[i - 1 : i].isalpha() and chunk[i + 1 : i + 2] in " "  # noqa: E731
    ends = [i for i, each in enumerate(chunk) if each == ")" and behind(i)]
    places, depth = [], 0
    for i, each in enumerate(chunk):
        depth += (each == "(") - (each == ")")
        if depth == 0 and each.isalpha() and chunk[i + 1 : i + 2] == " ":
            places.append(i + 1)
    pairs = [(place, end) for place in places for end in ends if place < end]
    if not pairs:
        return None
    place, end = pairs[int(torch.randint(len(pairs), (1,), generator=generator))]
    twin = chunk[:place] + ")" + chunk[place:end] + chunk[end + 1 :]
    return None if is_balanced(twin) else twin


def blanked(chunk: str) -> str:
    """The chunk without its brackets.

    >>> blanked("(ab) c")
    ' ab  c'
    """
    return chunk.replace("(", " ").replace(")", " ")


def expression_ids(chunks: list[str]) -> Int[Tensor, "B T"]:
    """Chunks of one length as tokens, the opening token first; ValueError for a symbol outside the alphabet."""
    lengths = sorted({len(chunk) for chunk in chunks})
    if len(lengths) != 1:
        raise ValueError(f"{len(chunks)} chunks of lengths {lengths}; give chunks of one length")
    unknown = sorted(set("".join(chunks)) - set(SYMBOLS))
    if unknown:
        raise ValueError(f"the symbols {unknown} are unknown; give lower-case letters, round brackets and spaces")
    return torch.tensor([[OPENING, *map(SYMBOLS.index, chunk)] for chunk in chunks])


def depth(texts: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """Brackets opened less closed up to and with each token, from -1 to 6, counted from 0.

    >>> depth(expression_ids(["(a)"]))
    tensor([[1, 2, 2, 1]])
    """
    steps = (texts == SYMBOLS.index("(")).long() - (texts == SYMBOLS.index(")")).long()
    return steps.cumsum(dim=1).clamp(-1, 6) + 1


def opened(texts: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """One bit: whether a bracket was opened up to and with each token.

    >>> opened(expression_ids(["a(b"]))
    tensor([[0, 0, 1, 1]])
    """
    return (texts == SYMBOLS.index("(")).cummax(dim=1).values.long()


def _uniforms(generator: torch.Generator, size: int = 4096):
    while True:
        yield from torch.rand(size, generator=generator, dtype=torch.float64).tolist()
