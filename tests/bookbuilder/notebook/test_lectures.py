"""Lectures as data: what a file may say, what it must sum to, and the lectures of the book's own chapters."""

from pathlib import Path

import pytest

from bookbuilder.notebook import lectures
from bookbuilder.paths import Repo, UserError

ROOT = Path(__file__).parents[3]
GOOD = """- show: the-question#1-2 a-theorem
  minutes: 20 30? 100
  say: Draw it first.
- show: a-figure
  minutes: 0 40 40
- name: Pause
  minutes: 30 20 40
"""


def written(tmp_path: Path, text: str) -> Path:
    path = lectures.path(tmp_path, "toy")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return tmp_path


def test_a_step_has_its_labels_minutes_and_words(tmp_path):
    found = lectures.read(written(tmp_path, GOOD), "toy")
    assert list(found) == [50, 90, 180]
    assert found[50] == [
        lectures.Step(("the-question#1-2", "a-theorem"), "", 20, False, "Draw it first."),
        lectures.Step((), "Pause", 30, False, ""),
    ]
    assert [(step.minutes, step.optional) for step in found[90]] == [(30, True), (40, False), (20, False)]


def test_a_step_has_a_way_for_each_length_and_its_aims(tmp_path):
    more = "say: Draw it first.\n  way: quote sketch prove\n  aims: 1 3"
    found = lectures.read(written(tmp_path, GOOD.replace("say: Draw it first.", more)), "toy")
    assert [found[length][0].way for length in (50, 90, 180)] == ["quote", "sketch", "prove"]
    assert found[50][0].aims == (1, 3)


def test_a_chapter_without_a_file_has_no_lectures(tmp_path):
    assert lectures.read(tmp_path, "toy") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD.replace("100", "101"), "lecture of 180 minutes take 181"),
        (GOOD.replace("20 30? 100", "20 30"), "toy.yml, entry 1: minutes are three numbers"),
        (GOOD.replace("  say", "  tell"), "toy.yml, entry 1: tell: unknown key"),
        (GOOD.replace("- name: Pause", "- say: Pause"), "toy.yml, entry 3: a step has show or name"),
        (GOOD.replace("- name: Pause", "- name: [Pause"), "toy.yml, line"),
        (GOOD.replace("say: Draw it first.", "say: Let the class draw."), "toy.yml, entry 1: say has a question"),
        (GOOD.replace("say: Draw it first.", "ask: Why?"), "toy.yml, entry 1: ask needs wrong"),
        (GOOD.replace("say: Draw it first.", "way: guess"), "toy.yml, entry 1: way is prove, sketch, quote"),
        (GOOD.replace("say: Draw it first.", "way: prove quote"), "one for all lengths or three; found 'prove quote'"),
        (GOOD.replace("say: Draw it first.", "aims: first"), "aims are numbers of objectives; found 'first'"),
        ("", "toy.yml: a list is expected; found None"),
    ],
)
def test_a_fault_is_named_in_one_line(tmp_path, text, words):
    with pytest.raises(UserError, match=words.replace("(", r"\(")) as caught:
        lectures.read(written(tmp_path, text), "toy")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("slug", [slug for slug in Repo(ROOT).chapters() if lectures.path(ROOT, slug).is_file()])
def test_lectures_of_a_chapter_are_three_with_words_for_the_speaker(slug):
    found = lectures.read(ROOT, slug)
    assert [sum(step.minutes for step in steps) for steps in found.values()] == [50, 90, 180]
    for steps in found.values():
        assert sum(bool(step.say or step.ask) for step in steps) >= 6
    assert any(step.optional for step in found[90]), "the lecture of 90 minutes has a step that can be dropped"
    shown = [{label for step in steps for label in step.show} for steps in found.values()]
    assert len(shown[0]) < len(shown[1]) < len(shown[2])
