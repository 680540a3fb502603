"""What every chapter's exercises keep: four kinds, a check that refuses what is wrong, a solution that passes it."""

import contextlib
import importlib
import io
from pathlib import Path

import nbformat
import numpy as np
import pytest

from bookbuilder.teach import homework
from derived.lab.exercises import Exercise, judged, number

ROOT = Path(__file__).resolve().parents[2]
SLUGS = sorted(path.parent.name for path in (ROOT / "src/derived/papers").glob("*/exercises.py"))


def source_of(slug: str) -> nbformat.NotebookNode:
    return nbformat.read(ROOT / f"notebooks/{slug}.ipynb", as_version=4)


def exercises_of(slug: str) -> dict[str, list[Exercise]]:
    found = importlib.import_module(f"derived.papers.{slug}.exercises").EXERCISES
    return {label: [each] if isinstance(each, Exercise) else [*each] for label, each in found.items()}


PARTS = [(slug, label, part) for slug in SLUGS for label, parts in exercises_of(slug).items() for part in parts]
MISTAKES = [(label, part, words) for _, label, part in PARTS for words in part.mistakes]


@pytest.mark.parametrize(("label", "part", "words"), MISTAKES, ids=[f"{label}-{words}" for label, _, words in MISTAKES])
def test_a_common_mistake_is_refused_and_where_it_fails_is_named(label, part, words):
    mistake = part.mistakes[words]
    constant = part.right is not None and part.draw is None and callable(mistake)
    said = judged(label, part, mistake() if constant else mistake)
    assert said.startswith("not right: at " if part.draw else "not right: yours is "), said
    assert "stops with" not in said
    assert said.endswith(f"; {words}" if part.right is not None else ""), said


def test_an_answer_has_at_most_two_common_mistakes():
    assert [label for _, label, part in PARTS if len(part.mistakes) > 2] == []


@pytest.mark.parametrize(("slug", "label", "part"), PARTS, ids=[label for _, label, _ in PARTS])
def test_no_answer_and_answers_of_a_wrong_kind_do_not_stop_the_page(slug, label, part):
    assert judged(label, part, ...) == "no answer yet"
    for answer in (11, [], None, "beta", lambda: 1, lambda *given: 1 / 0):
        assert judged(label, part, answer).startswith("not right: "), answer


EMPTY = {
    "nan": float("nan"),
    "imaginary": 1j,
    "a mapping": {},
    "a word": "0.5",
    "nothing in it": np.array([]),
    "always nan": lambda *given: float("nan"),
    "returns nothing": lambda *given: None,
    "always zero": lambda *given: 0.0,
    "always one": lambda *given: 1.0,
    "what it is given": lambda *given: given[0] if given else 7,
}


@pytest.mark.parametrize(("slug", "label", "part"), PARTS, ids=[label for _, label, _ in PARTS])
@pytest.mark.parametrize("kind", EMPTY)
def test_an_answer_with_nothing_in_it_is_refused(slug, label, part, kind):
    assert judged(label, part, EMPTY[kind]).startswith("not right: ")


FIXED = [(label, part) for _, label, part in PARTS if part.right is not None and not part.draw]


@pytest.mark.parametrize(("label", "part"), FIXED, ids=[label for label, _ in FIXED])
def test_a_number_that_is_off_by_a_hundredth_is_refused(label, part):
    right = number(part.right() if callable(part.right) else part.right)
    for wrong in (
        right + 0.01 * (1 + abs(right)),
        right - 0.01 * (1 + abs(right)),
        right + 1,
        np.stack([right, right]),
    ):
        assert judged(label, part, wrong).startswith("not right: "), wrong


DRAWN = [(label, part) for _, label, part in PARTS if part.right is not None and part.draw]


@pytest.mark.parametrize(("label", "part"), DRAWN, ids=[label for label, _ in DRAWN])
def test_what_the_package_computes_is_right(label, part):
    assert judged(label, part, part.right) == "right"


@pytest.mark.parametrize("slug", SLUGS)
def test_homework_runs_alone_and_each_solution_is_right(slug):
    """With solutions every check says right for each part; without them, that there is no answer yet."""
    notebook, parts = source_of(slug), exercises_of(slug)
    for solved, word in ((True, "right"), (False, "no answer yet")):
        found = homework.homework(slug, notebook, notebook, solved=solved)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec("\n".join(cell.source for cell in found.cells if cell.cell_type == "code"), {})
        expected = [
            f"({letter}) {word}" if len(each) > 1 else word
            for each in parts.values()
            for letter, _ in zip("abcdefgh", each, strict=False)
        ]
        assert sorted(said.getvalue().splitlines()) == sorted(expected), "each part once, in the order of the page"
