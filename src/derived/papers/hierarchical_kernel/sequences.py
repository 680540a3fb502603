"""Generated stand-ins for the paper's other two tasks: pictures read pixel by pixel, reviews read letter by letter.

symbol    name       meaning                                                     axes
s         tokens     codes; 0 behind the end of a sequence                       (num, T)
n         lengths    real symbols                                                (num,)
y         labels     classes 0, 1, ...                                           (num,)

A picture's token is its grey value, 0 .. 255, in raster order: the pixel below is ``size`` tokens away. A review's
token is a byte of its text, so that real reviews have the same vocabulary.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from .checks import check_count, check_within

SHAPES = ("disc", "square", "triangle", "cross", "ring")
TEXTURES = ("smooth", "striped")
GREYS = BYTES = 256
NOISE = 0.15  # standard deviation of a pixel, contrast being .3 to 1


class Sequences(NamedTuple):
    """Labelled sequences of codes, 0 behind their ends."""

    tokens: Tensor  # (num, T) int64
    lengths: Tensor  # (num,) int64
    labels: Tensor  # (num,) int64

    def to(self, device: torch.device | str) -> "Sequences":
        """The same on a device."""
        return Sequences(*(each.to(device) for each in self))


# --- pictures -----------------------------------------------------------------------------------------------------


def shapes_sequence(
    num: int, size: int = 32, *, generator: torch.Generator, device: torch.device | str = "cpu"
) -> Sequences:
    """Grey pictures of one shape, class = shape + 5 texture; T = size^2 pixels in raster order, codes 0 .. 255.

    Random centre, rotation, half-width 4/32 to 7/32 of the side, contrast .3 to 1 of either sign, a linear gradient
    behind, noise of deviation .15. Drawn on the generator's device. Stands in for sequential CIFAR-10. [ours]
    """
    check_count("num", num)
    check_count("size", size, 8)
    here = {"generator": generator, "device": generator.device}
    labels = torch.randint(len(SHAPES) * len(TEXTURES), (num,), **here)
    images = draw_shapes(labels, size, generator)
    codes = (images.clamp(0, 1) * (GREYS - 1)).round().long().flatten(1)
    return Sequences(codes, torch.full_like(labels, size**2), labels).to(device)


def draw_shapes(labels: Tensor, size: int, generator: torch.Generator) -> Float[Tensor, "num size size"]:
    """The pictures of given classes, not clipped."""

    def uniform(low: float, high: float) -> Tensor:
        draw = torch.rand(len(labels), 1, 1, generator=generator, device=generator.device)
        return low + (high - low) * draw

    half, angle = size * uniform(4 / 32, 7 / 32), uniform(0, 2 * math.pi)
    axis = torch.arange(size, device=generator.device) + 0.5
    row, column = axis.view(-1, 1) - size * uniform(0.3, 0.7), axis - size * uniform(0.3, 0.7)
    u = (torch.cos(angle) * column + torch.sin(angle) * row) / half
    v = (torch.cos(angle) * row - torch.sin(angle) * column) / half
    inside = torch.stack(inside_shapes(u, v))[labels % len(SHAPES), torch.arange(len(labels), device=labels.device)]
    stripes = torch.where(torch.sin(2 * math.pi * u) > 0, 1.0, 0.0)  # two periods across a shape
    texture = torch.where((labels >= len(SHAPES)).view(-1, 1, 1), stripes, 1.0)
    contrast = uniform(0.3, 1.0) * torch.where(uniform(0, 1) < 0.5, -1.0, 1.0)
    slope = (uniform(-0.2, 0.2) * row + uniform(-0.2, 0.2) * column) / size
    noise = torch.randn(len(labels), size, size, generator=generator, device=generator.device)
    return 0.5 + slope + 0.5 * contrast * inside.float() * texture + NOISE * noise


def inside_shapes(u: Tensor, v: Tensor) -> list[Tensor]:
    """Where (u, v), in units of the half-width, lies inside each of ``SHAPES``."""
    radius = torch.hypot(u, v)
    square = torch.maximum(u.abs(), v.abs()) <= 0.9
    triangle = (v >= -0.6) & (v + math.sqrt(3) * u.abs() <= 1.2)
    cross = (torch.minimum(u.abs(), v.abs()) <= 0.3) & (torch.maximum(u.abs(), v.abs()) <= 1)
    return [radius <= 1, square, triangle, cross, (radius <= 1) & (radius >= 0.55)]


# --- reviews ------------------------------------------------------------------------------------------------------

CONSONANTS, VOWELS = "bcdfgklmnprstv", "aeiou"
NUM_WORDS = 30  # of each polarity
SUBJECTS = ("the plot", "the acting", "the music", "the ending", "the camera", "the script", "the cast", "the pace")
FILLERS = (
    "i saw it on a monday with my brother, who had chosen the seats and would not say why. ",
    "it runs for two hours and there is a break after the first one, so bring a coat and some change. ",
    "the theatre behind the old market was half full, as it always is when the weather turns in november. ",
    "it was made in the nineties, by people who had worked on the radio before, and shown abroad two years later. ",
    "there are three main roles, and each of them gets a room, a window and a song of about four minutes. ",
    "a man leaves a town by the sea, meets a clerk, loses a letter and comes back in the winter of the same year. ",
)
NEGATOR, INTENSIFIER, BUT = "not ", "very ", "but "
LEAST, MOST = 4, 12  # sentences of a review


SHORTEST = 448  # letters that hold the least number of the longest sentences


def polar_words() -> tuple[list[str], list[str]]:
    """The 30 positive and 30 negative adjectives: distinct pseudo-words of 4 to 8 letters, always the same."""
    syllables = [c + v for c in CONSONANTS for v in VOWELS]
    pairs = ((137 * i) % 4900 for i in range(2 * NUM_WORDS))  # a walk through all 70^2 pairs that meets none twice
    words = [syllables[i // 70] + syllables[i % 70] + ("", "n", "ry", "lest")[i % 4] for i in pairs]
    return words[:NUM_WORDS], words[NUM_WORDS:]


class Drafts(NamedTuple):
    """Reviews before they are written out; a sentence has one or two clauses, or none if it is a filler."""

    num_sentences: np.ndarray  # (num,)
    filler: np.ndarray  # (num, MOST) index of a filler, -1 for an opinion
    two: np.ndarray  # (num, MOST) bool, a second clause behind "but"
    subject: np.ndarray  # (num, MOST, 2)
    adjective: np.ndarray  # (num, MOST, 2), below NUM_WORDS: positive
    negated: np.ndarray  # (num, MOST, 2) bool
    intense: np.ndarray  # (num, MOST, 2) bool

    def scores(self) -> np.ndarray:
        """(num, MOST): each sentence's sum of clauses, +-1, twice behind "very", twice behind "but"."""
        sign = np.where((self.adjective < NUM_WORDS) ^ self.negated, 1, -1) * np.where(self.intense, 2, 1)
        both = sign[..., 0] + 2 * sign[..., 1] * self.two
        return np.where((self.filler < 0) & self._said(), both, 0)

    def widths(self) -> np.ndarray:
        """(num, MOST): letters of each sentence, 0 behind the last."""
        words, fillers, subjects = (np.array([len(each) for each in group]) for group in (_words(), FILLERS, SUBJECTS))
        clause = subjects[self.subject] + len(" is ") + words[self.adjective]
        clause = clause + len(NEGATOR) * self.negated + len(INTENSIFIER) * self.intense
        opinion = clause[..., 0] + len(". ") + self.two * (clause[..., 1] + len(", " + BUT))
        return np.where(self._said(), np.where(self.filler >= 0, fillers[self.filler], opinion), 0)

    def _said(self) -> np.ndarray:
        return np.arange(MOST) < self.num_sentences[:, None]

    def text(self, i: int) -> str:
        """Review i in letters."""
        return "".join(self._sentence(i, j) for j in range(self.num_sentences[i]))

    def _sentence(self, i: int, j: int) -> str:
        if self.filler[i, j] >= 0:
            return FILLERS[self.filler[i, j]]
        second = f", {BUT}{self._clause(i, j, 1)}" if self.two[i, j] else ""
        return f"{self._clause(i, j, 0)}{second}. "

    def _clause(self, i: int, j: int, c: int) -> str:
        negator, intensifier = NEGATOR * bool(self.negated[i, j, c]), INTENSIFIER * bool(self.intense[i, j, c])
        return f"{SUBJECTS[self.subject[i, j, c]]} is {negator}{intensifier}{_words()[self.adjective[i, j, c]]}"


def _words() -> list[str]:
    positive, negative = polar_words()
    return positive + negative


def draw_drafts(num: int, length: int, draws: np.random.Generator) -> Drafts:
    """4 to 12 sentences each, cut behind the last one that ends within ``length`` letters."""
    shape, clauses = (num, MOST), (num, MOST, 2)
    filler = np.where(draws.random(shape) < 0.5, draws.integers(0, len(FILLERS), shape), -1)
    two, negated, intense = draws.random(shape) < 0.25, draws.random(clauses) < 0.25, draws.random(clauses) < 0.25
    subject, adjective = draws.integers(0, len(SUBJECTS), clauses), draws.integers(0, 2 * NUM_WORDS, clauses)
    drafts = Drafts(draws.integers(LEAST, MOST + 1, num), filler, two, subject, adjective, negated, intense)
    fitting = np.count_nonzero(np.cumsum(drafts.widths(), axis=1) <= length, axis=1)
    return drafts._replace(num_sentences=np.minimum(drafts.num_sentences, fitting))


def first_half_scores(drafts: Drafts) -> np.ndarray:
    """(num,): the score of the sentences that end within the first half of a review's letters."""
    ends = np.cumsum(drafts.widths(), axis=1)
    return np.sum(drafts.scores() * (2 * ends <= ends[:, -1:]), axis=1)


def synthetic_reviews(
    num: int,
    length: int = 1024,
    *,
    misleading: float = 0.3,
    generator: torch.Generator,
    device: torch.device | str = "cpu",
) -> Sequences:
    """Reviews of 4 to 12 template sentences, label 1 iff the sum of their clauses is positive (ties drawn again).

    A clause counts +-1 by its adjective, turned by "not", doubled by "very" and behind "but"; fillers count nothing.
    The first half alone has the wrong sign in a share ``misleading`` of the reviews, so that far letters matter. Bytes,
    padded to ``length``; a review ends with a whole sentence. Stands in for IMDB by characters. [ours]
    """
    check_count("num", num)
    check_count("length", length, SHORTEST)
    check_within("misleading", misleading, 0.0, 1.0)
    draws = np.random.default_rng(int(torch.randint(2**62, (), generator=generator, device=generator.device)))
    wanted = draws.random(num) < misleading
    texts, labels = np.empty(num, dtype=object), np.empty(num, dtype=np.int64)
    for wrong in (False, True):
        slots = np.flatnonzero(wanted == wrong)
        while len(slots):
            drafts = draw_drafts(2 * len(slots) + 64, length, draws)
            total = np.sum(drafts.scores(), axis=1)
            fits = np.flatnonzero((total != 0) & ((first_half_scores(drafts) * total < 0) == wrong))[: len(slots)]
            here, slots = slots[: len(fits)], slots[len(fits) :]
            labels[here] = total[fits] > 0
            texts[here] = [drafts.text(i) for i in fits]
    return encode_texts(list(texts), length, torch.from_numpy(labels)).to(device)


def encode_texts(texts: list[str], length: int, labels: Tensor) -> Sequences:
    """The first ``length`` bytes of each text in UTF-8, padded with 0. Raises ValueError for an empty text or a NUL."""
    rows = np.zeros((len(texts), length), dtype=np.uint8)
    lengths = np.zeros(len(texts), dtype=np.int64)
    for i, text in enumerate(texts):
        data = np.frombuffer(text.encode()[:length], dtype=np.uint8)
        if not len(data) or not data.all():
            raise ValueError(f"text {i} is empty or holds a NUL, which is the padding; leave it out or replace it")
        rows[i, : len(data)], lengths[i] = data, len(data)
    return Sequences(torch.from_numpy(rows.astype(np.int64)), torch.from_numpy(lengths), labels)
