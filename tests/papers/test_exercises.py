"""What every chapter's exercises keep: four kinds, a check that refuses what is wrong, a solution that passes it."""

import contextlib
import importlib
import io
import re
from collections import Counter
from pathlib import Path

import nbformat
import numpy as np
import pytest

from bookbuilder.teach import homework
from derived.lab.exercises import Derive, Implement, judged, number

ROOT = Path(__file__).resolve().parents[2]
SLUGS = sorted(path.parent.name for path in (ROOT / "src/derived/papers").glob("*/exercises.py"))


def is_first_draft(slug: str) -> bool:
    """Whether a chapter has its exercises in one section, with hints, kinds and minutes in a fixed form."""
    return source_of(slug).metadata["derived"]["edition"] < 3


def source_of(slug: str) -> nbformat.NotebookNode:
    return nbformat.read(ROOT / f"notebooks/{slug}.ipynb", as_version=4)


FIRST_DRAFTS = [slug for slug in SLUGS if is_first_draft(slug)]


def exercises_of(slug: str) -> dict[str, list[Derive | Implement]]:
    found = importlib.import_module(f"derived.papers.{slug}.exercises").EXERCISES
    return {label: [each] if isinstance(each, Derive | Implement) else [*each] for label, each in found.items()}


PARTS = [(slug, label, part) for slug in SLUGS for label, parts in exercises_of(slug).items() for part in parts]
MISTAKES = [(label, part, words) for _, label, part in PARTS for words in part.mistakes]


@pytest.mark.parametrize(("label", "part", "words"), MISTAKES, ids=[f"{label}-{words}" for label, _, words in MISTAKES])
def test_a_common_mistake_is_refused_and_where_it_fails_is_named(label, part, words):
    mistake = part.mistakes[words]
    constant = isinstance(part, Derive) and part.draw is None and callable(mistake)
    said = judged(label, part, mistake() if constant else mistake)
    named = f"; {words}" if isinstance(part, Derive) else ""
    assert said.startswith("not right: at " if part.draw else "not right: yours is "), said
    assert "stops with" not in said
    assert said.endswith(named), said


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


FIXED = [(label, part) for _, label, part in PARTS if isinstance(part, Derive) and not part.draw]


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


DRAWN = [(label, part) for _, label, part in PARTS if isinstance(part, Derive) and part.draw]


@pytest.mark.parametrize(("label", "part"), DRAWN, ids=[label for label, _ in DRAWN])
def test_what_the_package_computes_is_right(label, part):
    assert judged(label, part, part.right) == "right"


@pytest.mark.parametrize(("slug", "label", "part"), PARTS, ids=[label for _, label, _ in PARTS])
def test_an_exercise_of_a_first_draft_knows_three_mistakes(slug, label, part):
    assert len(part.mistakes) >= (3 if slug in FIRST_DRAFTS else 1)


@pytest.mark.parametrize("slug", FIRST_DRAFTS)
def test_a_chapter_has_exercises_of_all_kinds_with_minutes_and_a_rubric_where_words_are_asked_for(slug):
    facts, parts = homework.facts(source_of(slug)), exercises_of(slug)
    kinds = Counter(one.kind for one in facts)
    assert len(facts) >= 6, kinds
    assert kinds["Implement"] >= 2, kinds
    assert kinds["Judge"] >= 1, kinds
    assert kinds["Project"] >= 1, kinds
    assert {one.label for one in facts if one.kind in ("Derive", "Implement")} == {*parts}
    for one in facts:
        assert one.rubric or one.kind not in ("Judge", "Project"), one
        assert (one.difficulty == "open") == (one.kind == "Project"), one
        assert one.kind not in ("Derive", "Implement") or isinstance(parts[one.label][0], Derive) == (
            one.kind == "Derive"
        ), one


@pytest.mark.parametrize("slug", FIRST_DRAFTS)
def test_an_exercise_says_how_important_it_is_and_has_a_nudge_and_a_first_step(slug):
    """Facts without an importance are not read, so an exercise that says none is missing among them."""
    facts, hints = homework.facts(source_of(slug)), homework.hints(source_of(slug))
    assert [one.label for one in facts] == [*hints]
    assert {one.importance for one in facts} == {"core", "useful", "extra"}
    texts = [text for each in hints.values() for text in each.values()]
    assert all([*each] == ["A nudge", "The first step"] for each in hints.values()), hints
    assert all(3 <= len(text.split()) <= 70 for text in texts)
    assert len({*texts}) == len(texts)


@pytest.mark.parametrize("slug", FIRST_DRAFTS)
def test_the_core_of_a_chapter_takes_an_hour_or_an_hour_and_a_half_and_has_every_kind(slug):
    core = [one for one in homework.facts(source_of(slug)) if one.importance == "core"]
    assert 60 <= sum(one.minutes for one in core) <= 90
    assert {one.kind for one in core} == {"Derive", "Implement", "Judge"}


def with_tables(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook as if each code cell had shown a table."""
    copy = nbformat.from_dict(notebook)
    for cell in (each for each in copy.cells if each.cell_type == "code"):
        cell.outputs = [nbformat.v4.new_output("execute_result", data={"text/html": "<table>1</table>"})]
    return copy


@pytest.mark.parametrize("slug", FIRST_DRAFTS)
def test_homework_prints_once_each_statement_that_it_cites(slug):
    """In the exercises, in their hints, and in what is printed; an equation with its statement."""
    notebook = source_of(slug)
    cells = homework.homework(slug, notebook, with_tables(notebook), solved=False).cells
    (printed,) = (cell.source for cell in cells if cell.id == "cited")
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    text = re.sub(r"^::::::\{admonition\} Symbols\n.*?^::::::$", "", text, flags=re.M | re.S)
    labels, equations = ({*re.findall(rf"\{{{role}\}}`(?:[^`<]*<)?([^`<>]+)>?`", text)} for role in ("prf:ref", "eq"))
    assert len(labels) >= 3
    for label in labels:
        assert re.search(rf"^:label: {label}$", printed, re.M), label
        assert printed.count(f"{{admonition}} {{prf:ref}}`{label}`") == 1, label
    for label in equations:
        assert printed.count(f"$$ ({label})") == 1, label
    assert ("*Reading the paper's numbers*" in text) == ("<table>1</table>" in printed)


@pytest.mark.parametrize("slug", SLUGS)
def test_homework_runs_alone_and_each_solution_is_right(slug):
    """With solutions every check says right for each part; without them, that there is no answer yet."""
    notebook, parts = source_of(slug), exercises_of(slug)
    for solved, word in ((True, "right"), (False, "no answer yet")):
        found = homework.homework(slug, notebook, with_tables(notebook), solved=solved)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec("\n".join(cell.source for cell in found.cells if cell.cell_type == "code"), {})
        expected = [
            f"({letter}) {word}" if len(each) > 1 else word
            for each in parts.values()
            for letter, _ in zip("abcdefgh", each, strict=False)
        ]
        assert sorted(said.getvalue().splitlines()) == sorted(expected), "each part once, in the order of the page"
