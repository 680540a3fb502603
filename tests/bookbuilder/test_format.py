"""How values are written for readers."""

import math

import pytest

from bookbuilder import format


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0, "0"),
        (3.0, "3"),
        (-2, "−2"),
        (0.31, "0.31"),
        (1.006593, "1.007"),
        (-0.0034, "−0.0034"),
        (1.28e-05, "1.28\u2009×\u200910<sup>−5</sup>"),
        (-1.5e12, "−1.5\u2009×\u200910<sup>12</sup>"),
        (999999, "999999"),
        (1e6, "1\u2009×\u200910<sup>6</sup>"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (math.nan, "nan"),
        ("$\\le 1$", '<span class="math notranslate nohighlight">\\(\\le 1\\)</span>'),
    ],
)
def test_numbers_as_a_reader_writes_them(value, shown):
    assert format.number(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "–"),
        (0.42, "0.4 s"),
        (9.96, "10.0 s"),
        (41.3, "41 s"),
        (99.4, "99 s"),
        (100, "2 min"),
        (3590, "1 h 00 min"),
        (8100, "2 h 15 min"),
    ],
)
def test_durations(seconds, shown):
    assert format.duration(seconds) == shown


def test_memory():
    assert [format.memory(m) for m in (None, 690.4, 1210.0)] == ["–", "690 MB", "1.2 GB"]


def test_sentences_keep_maths_and_escape_the_rest():
    text = format.typeset("If $a<b$ & `x<y`, it costs \\$5.")
    maths = '<span class="math notranslate nohighlight">\\(a&lt;b\\)</span>'
    assert text == f"If {maths} &amp; <code>x&lt;y</code>, it costs $5."


def test_punctuation_stays_with_its_formula():
    text = format.typeset("So $a$, and $b$ is.")
    assert "\\(a\\)</span>,</span> and" in text
    assert "\\(b\\)</span> is." in text


@pytest.mark.parametrize(("count", "word"), [(0, "no"), (3, "three"), (12, "twelve"), (13, "13")])
def test_small_counts_are_words(count, word):
    assert format.spelt(count) == word
