"""Generated reviews read letter by letter, a stand-in for IMDB by characters.

symbol    name       meaning                                                     axes
s         tokens     bytes of the text, so that real reviews have the same vocabulary; 0 after the end   (num, T)
n         lengths    letters                                                     (num,)
y         labels     1 for a positive review                                     (num,)
"""

from typing import NamedTuple

import numpy as np
import torch

from derived.lab.checks import check_count, check_within

from .sequences import Sequences, encode_texts

CONSONANTS, VOWELS = "bcdfgklmnprstv", "aeiou"
BYTES = 256
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
    two: np.ndarray  # (num, MOST) bool, a second clause after "but"
    subject: np.ndarray  # (num, MOST, 2)
    adjective: np.ndarray  # (num, MOST, 2), below NUM_WORDS: positive
    negated: np.ndarray  # (num, MOST, 2) bool
    intense: np.ndarray  # (num, MOST, 2) bool

    def scores(self) -> np.ndarray:
        """(num, MOST): each sentence's sum of clauses, +-1, twice after "very", twice after "but"."""
        sign = np.where((self.adjective < NUM_WORDS) ^ self.negated, 1, -1) * np.where(self.intense, 2, 1)
        both = sign[..., 0] + 2 * sign[..., 1] * self.two
        return np.where((self.filler < 0) & self._said(), both, 0)

    def widths(self) -> np.ndarray:
        """(num, MOST): letters of each sentence, 0 after the last."""
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
    """4 to 12 sentences each, cut after the last one that ends within ``length`` letters."""
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

    A clause counts +-1 by its adjective, turned by "not", doubled by "very" and after "but"; fillers count nothing.
    The first half alone has the wrong sign in a share ``misleading`` of the reviews, so that far letters matter. Bytes,
    padded to ``length``; a review ends with a whole sentence. A stand-in for IMDB by characters. ValueError for
    num < 1, length < 448 and a share outside [0, 1]. [ours]

    >>> drawn = synthetic_reviews(2, 448, generator=torch.Generator())
    >>> drawn.tokens.shape, set(drawn.labels.tolist()) <= {0, 1}
    (torch.Size([2, 448]), True)
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
