"""Minutes are counted from the source."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from bookbuilder.notebook import reading

TEXT = """## Derivation

One two $a$ three, {prf:ref}`four`.

:::{prf:theorem} Five six
:label: seen-by-nobody
:class: ours
Seven $b + c$.
:::

```{prf:proof}
Eight.

$$
x = y
$$ (label)
```

```{math}
:label: also
z
```
<!-- nothing to read -->
"""


def test_words_formulas_and_proofs_are_counted_and_markup_is_not():
    assert reading.counted(TEXT) == {"word": 9, "inline": 2, "display": 2, "proof": 1}  # with the heading


def minutes(*cells) -> reading.Minutes:
    return reading.minutes({"cells": list(cells)})


def words(count: int, heading: str = "") -> dict:
    return new_markdown_cell(f"{heading}\n\n" + "word " * count)


def test_the_short_path_ends_where_the_next_section_begins():
    short, rest = words(1997, "## In short"), words(1998, "## The question")
    assert minutes(short, rest) == (10, 20)
    assert minutes(words(2000), words(1997, "## In short"), rest) == (20, 30)
    assert minutes(rest) == (None, 10)
    assert minutes(short) == (10, 10)
    one_cell = new_markdown_cell(f"{short.source}\n\n{rest.source}")
    assert minutes(one_cell) == (10, 20)


@pytest.mark.parametrize("tag", ["solution", "remove-cell"])
def test_what_nobody_reads_takes_no_time(tag):
    hidden = new_markdown_cell("word " * 9000, metadata={"tags": [tag]})
    assert minutes(words(200), hidden) == (None, 1)


def test_a_hint_takes_no_time():
    hint = "```{admonition} A nudge\n:class: hint dropdown\n\n" + "word " * 9000 + "\n```"
    assert minutes(new_markdown_cell(f"{words(200).source}\n\n{hint}")) == (None, 1)


def test_code_that_is_shown_takes_time():
    code = "x = 1\n" * 100
    assert minutes(new_code_cell(code)) == (None, 5)
    assert minutes(new_code_cell(code, metadata={"tags": ["hide-input"]})) == (None, 1)


@pytest.mark.parametrize(("seconds", "shown"), [(0, 1), (630, 10), (1170, 20), (1300, 20), (1360, 25), (5000, 85)])
def test_nobody_reads_to_the_minute(seconds, shown):
    assert reading.rounded(seconds) == shown
