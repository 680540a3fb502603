"""Generated reviews: their rules, their words, and what both generated tasks refuse."""

import math
import re

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.data import reviews
from derived.papers.hierarchical_kernel.data.images import shapes_sequence
from derived.papers.hierarchical_kernel.data.sequences import Sequences, encode_texts


def read(review: torch.Tensor, length: int) -> str:
    return bytes(review[:length].tolist()).decode()


def score(text: str) -> list[tuple[int, int]]:
    """(end, score) of each sentence, read from the letters alone: the rules once more, by a regular expression."""
    positive, negative = reviews.polar_words()
    found, end = [], 0
    for sentence in re.findall(r"[^.]*\. ", text):
        end += len(sentence)
        total = 0
        for clause in re.finditer(r"(but )?the [a-z]+ is (not )?(very )?([a-z]+)(?=[,.])", sentence):
            but, negated, very, word = clause.groups()
            if word in positive or word in negative:
                sign = 1 if (word in positive) != bool(negated) else -1
                total += sign * (2 if but else 1) * (2 if very else 1)
        found.append((end, total))
    assert end == len(text)
    return found


def test_reviews_follow_their_rules():
    """Each label read back from the text; 30 % of first halves mislead; texts end with a whole sentence in range."""
    num = 3000
    drawn = reviews.synthetic_reviews(num, generator=stream(0, "reviews"))
    wrong, balance = 0, 0
    for review, length, label in zip(drawn.tokens, drawn.lengths.tolist(), drawn.labels.tolist(), strict=True):
        text = read(review, length)
        sentences = score(text)
        total = sum(points for _, points in sentences)
        assert (total > 0) == bool(label)
        assert total != 0
        assert 4 <= len(sentences) <= 12
        assert not review[length:].any()
        half = sum(points for end, points in sentences if 2 * end <= length)
        wrong += half * total < 0
        balance += label
    assert abs(wrong / num - 0.3) < 4.5 * math.sqrt(0.21 / num)
    assert abs(balance / num - 0.5) < 4.5 * math.sqrt(0.25 / num)
    assert int(drawn.lengths.max()) <= 1024
    assert float(drawn.lengths.double().mean()) > 400


@pytest.mark.parametrize("misleading", [0.0, 1.0])
def test_share_of_misleading_reviews_is_asked_for(misleading):
    drawn = reviews.synthetic_reviews(60, 448, misleading=misleading, generator=stream(0, "misleading"))
    assert drawn.tokens.shape == (60, 448)
    for review, length in zip(drawn.tokens, drawn.lengths.tolist(), strict=True):
        sentences = score(read(review, length))
        total = sum(points for _, points in sentences)
        half = sum(points for end, points in sentences if 2 * end <= length)
        assert (half * total < 0) == bool(misleading)


def test_words_and_sentences():
    positive, negative = reviews.polar_words()
    assert len(positive) == len(negative) == reviews.NUM_WORDS == 30
    assert len({*positive, *negative}) == 60
    assert all(4 <= len(word) <= 8 for word in positive + negative)
    assert not any(word in filler.split() for word in positive + negative for filler in reviews.FILLERS)
    longest = max(len(f"{subject} is not very {word}") for subject in reviews.SUBJECTS for word in positive + negative)
    assert reviews.LEAST * max(2 * longest + len(", but . "), *map(len, reviews.FILLERS)) <= reviews.SHORTEST


def test_sets_travel_and_are_reproducible():
    a, b, c = (reviews.synthetic_reviews(8, generator=stream(seed, "r")) for seed in (0, 0, 1))
    assert torch.equal(a.tokens, b.tokens)
    assert not torch.equal(a.tokens, c.tokens)
    assert isinstance(a.to("cpu"), Sequences)
    assert torch.equal(
        shapes_sequence(3, generator=stream(0, "p")).tokens, shapes_sequence(3, generator=stream(0, "p"))[0]
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shapes_sequence(0, generator=stream(0, "n")), "num = 0"),
        (lambda: shapes_sequence(1, 7, generator=stream(0, "n")), "size = 7"),
        (lambda: reviews.synthetic_reviews(1, 400, generator=stream(0, "n")), "length = 400"),
        (lambda: reviews.synthetic_reviews(1, misleading=2.0, generator=stream(0, "n")), "misleading = 2;"),
        (lambda: encode_texts([""], 4, torch.zeros(1)), "text 0 is empty"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
