"""What the page for teachers is filled with, from small pages and lectures."""

import re

import pytest
import toybook
from bs4 import BeautifulSoup
from test_pages import chapter, row

from bookbuilder.notebook.lectures import Step
from bookbuilder.paths import UserError
from bookbuilder.teach import teaching
from bookbuilder.teach.slides import Lecture, Planned

BOX = '<div class="proof theorem admonition" id="{}"><p class="admonition-title">T</p><p>{}</p></div>'
LINK = '<a href="#{}">x</a>'


def section(anchor: str, label: str, *refers: str) -> str:
    links = " ".join(map(LINK.format, refers))
    return f'<section id="{anchor}"><h3>About \\({anchor}\\)</h3>{BOX.format(label, links)}<p>Prose.</p></section>'


PAGE = "<article><section id='x'><h2>X</h2>{}</section></article>".format(
    section("a", "t1")
    + section("b", "t2", "t1", "t3")
    + "<section id='empty'><h3>Prose only</h3><p>No box.</p></section>"
    + section("c", "t3", "t1", "t2", "nowhere")
    + section("d", "t4")
)
LECTURE = Lecture(
    90,
    [],
    [
        Planned(Step(("t1",), "", 50, False, "Say it.", "prove", "Why?", "By luck."), "Theorem 1.1 (The price)", 0),
        Planned(Step(("t2",), "", 30, True, ""), "Theorem 1.2 (Dropped); Fig. 1.1", 1),
        Planned(Step((), "Questions", 10, False, ""), "Questions", None),
    ],
)


def test_an_arc_joins_the_middles_of_two_lines():
    first, last = teaching.Section("a", "A", ()), teaching.Section("c", "C", (0,))
    (arc,) = teaching._arcs([first, teaching.Section("b", "B", ()), last])
    numbers = list(map(float, re.findall(r"-?[\d.]+", arc)))
    assert [numbers[1], numbers[-1]] == [teaching.ROW / 2, 2.5 * teaching.ROW]


def test_a_section_needs_the_nearest_of_those_before_it_to_which_it_refers():
    found = teaching.needs(BeautifulSoup(PAGE, "html.parser"))
    assert [(each.anchor, each.needs) for each in found] == [("a", ()), ("b", (0,)), ("c", (1,)), ("d", ())]
    assert found[0].heading == "About $a$"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "book/lectures").mkdir(parents=True)
    toybook.write_toc(tmp_path, "toy", "absent")
    return tmp_path


def test_a_course_names_sections_that_are_there(root):
    known, found = {"toy": chapter(row("T-1"))}, {"toy": teaching.needs(BeautifulSoup(PAGE, "html.parser"))}
    path = root / "book/lectures/courses.yml"
    path.write_text("Algebra:\n  - toy#b\n  - absent#b\n")
    ((name, those),) = teaching.courses(root, known, found)
    assert (name, [each.anchor for _, each in those]) == ("Algebra", ["b"])
    path.write_text("Algebra:\n  - toy#empty\n")
    with pytest.raises(UserError, match="toy has no section empty that states something"):
        teaching.courses(root, known, found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A: [typo#b]", "courses.yml: the book has no chapter typo; it has toy, absent"),
        ("A: [toy]", "courses.yml: an entry is slug#label; found 'toy'"),
        ("A: toy#b", "courses.yml: A: a list is expected; found 'toy#b'"),
        ("A: [toy#b", "courses.yml, line 2: did not find expected ',' or ']'"),
    ],
)
def test_a_course_that_cannot_be_read_is_refused_in_one_line(root, text, words):
    (root / "book/lectures/courses.yml").write_text(text)
    with pytest.raises(UserError) as caught:
        teaching.courses(root, {}, {})
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("week", "words"),
    [
        ("typo 90", "syllabus.yml: the book has no chapter typo; it has toy, absent"),
        ("absent 60", "syllabus.yml: absent has no lecture of 60 minutes"),
        ("toy 50", "syllabus.yml: toy has no lecture of 50 minutes"),
        ("toy", "syllabus.yml: an entry is slug minutes; found 'toy'"),
        ("words: Projects", "syllabus.yml: 2, entry 1: name is missing"),
    ],
)
def test_a_week_that_there_cannot_be_is_refused(root, week, words):
    (root / "book/lectures/syllabus.yml").write_text(f"2:\n  - {week}\n")
    with pytest.raises(UserError) as caught:
        teaching.syllabus(root, {"toy": chapter(row("T-1"))}, {"toy": [LECTURE]})
    assert str(caught.value) == words


def test_a_week_holds_the_core_results_of_its_lecture(root):
    (root / "book/lectures/syllabus.yml").write_text("2:\n  - toy 90\n  - name: Projects\n  - absent 50\n")
    ((weeks, those),) = teaching.syllabus(root, {"toy": chapter(row("T-1"))}, {"toy": [LECTURE]})
    assert weeks == 2
    assert [(week.name, week.results) for week in those] == [("", ["The price"]), ("Projects", [])]


def test_a_plan_says_when_what_is_shown():
    text = teaching.plan(chapter(row("T-1")), [LECTURE], 4)
    assert (
        "| 0 | 50 | Theorem 1.1 (The price) | 3 | core | prove | Say it. **Ask:** Why? **Expect:** By luck. |" in text
    )
    assert "| 50 | 30 | Theorem 1.2 (Dropped); Fig. 1.1 | 4 | optional |  |  |" in text
    assert "| 80 | 10 | Questions |  |  |  |  |" in text
    assert "The homework has 4 points" in text
