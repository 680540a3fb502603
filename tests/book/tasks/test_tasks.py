"""The tasks of every chapter, for a thousand names each."""

import json
import math
import random
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_markdown_cell

from derived.book.house import House, UserError
from derived.book.page import tries
from derived.book.tasks import asking, mutants, quick, tasks
from derived.lab.court import Court, convicts, length, pack, pencil, worth
from derived.lab.forecast import SIGNS, came
from derived.lab.subjects import flat, moved, told

ROOT = Path(__file__).resolve().parents[3]
SLUGS = House(ROOT).chapters()
NAMES = [f"student {k}" for k in range(1000)]


@pytest.fixture(scope="module", params=SLUGS)
def bank(request):
    return tasks.bank(ROOT, request.param)


def test_a_chapter_has_ten_of_each(bank):
    assert len(bank.items) >= 10
    assert len(bank.mutants) >= 10
    assert len({each.change for each in bank.mutants}) >= 10


def test_a_thousand_forecasts_can_be_asked_and_run(bank):
    seen = set()
    for who in NAMES:
        one = tasks.forecasts(bank, who)[0]
        assert all(one.subject.admits(point) for point in (one.point, moved(one.point, one.slot, one.to), *one.calls))
        went, order, value = came(pencil(bank.source), one)
        assert math.isfinite(value)
        assert went in ("rises", "falls", "stays")
        assert sorted(order) == ["A", "B", "C"]
        seen.add((one.subject.words, one.slot))
    assert len(seen) >= 10
    assert tasks.forecasts(bank, "Ada") == tasks.forecasts(bank, "Ada") != tasks.forecasts(bank, "Bob")


def test_a_thousand_mutants_are_convicted_by_their_witness_and_by_no_other_letter(bank, capsys):
    healthy, courts = pencil(bank.source), {}
    for who in NAMES:
        drawn = tasks.case(bank, who)
        found, subject = drawn.mutant, drawn.subjects[drawn.guilty]
        if found not in courts.values():
            courts[who] = found
            assert convicts(subject, healthy, pencil(found.broken), found.witness)
            court = Court(bank.source, drawn.subjects, drawn.guilty, found.broken, length(found.witness), found.usual)
            right = subject.value(healthy, found.witness)
            assert court.charge("ABCD"[drawn.guilty], right, **found.witness) == 10
            wrong = [1.5 * each + 1 for each in flat(right)]
            assert court.charge("ABCD"[drawn.guilty], wrong, **found.witness) == 0
            assert court.charge("ABCD"[drawn.guilty - 1], right, **found.witness) == 0
        assert len({each.words for each in drawn.subjects}) == tasks.CALLABLES
    assert len(courts) >= 10


def test_quick_questions_have_one_right_value_and_say_what_is_wrong_with_the_others(bank):
    asked, healthy = quick.questions(bank.source, bank.exact, bank.mutants), pencil(bank.source)
    assert len(asked) >= 10
    assert len({(each.subject.words, told(each.point)) for each in asked}) == len(asked)
    for each in asked:
        assert each.subject.admits(each.point)
        (right,) = (option for option in each.options if not option.misread)
        assert float(right.value) == pytest.approx(flat(each.subject.value(healthy, each.point))[0], rel=5e-3, abs=1e-9)
        assert 3 <= len(each.options) == len({option.value for option in each.options})
        if each.subject.words.startswith("the probability"):  # a value outside of 0 and 1 tells at a glance
            assert all(0 <= float(option.value) <= 1 for option in each.options)
        for option in each.options:
            assert not option.misread or f"<code>{option.misread.function}</code>." in option.said()
            assert not option.misread or f"def {option.misread.function}(" in bank.source
    text = quick.page("A & B", bank.source, asked)
    assert text.count("<details>") == sum(len(each.options) for each in asked) + 1
    assert "A &amp; B" in text
    fold = quick.fold(asked)
    assert fold.count("<summary>") == fold.count("</details>") == sum(len(each.options) for each in asked) + 1
    assert fold.count("<p>Right.</p>") == len(asked)
    assert quick.fold([]) == ""


def test_a_section_has_up_to_three_questions_of_as_many_quantities_as_can_be(bank):
    asked = quick.questions(bank.source, bank.exact, bank.mutants)
    shown = quick.chosen(asked)
    assert [each for each in asked if each in shown] == shown
    assert len(shown) == quick.EACH == len({each.subject.words for each in shown})
    one = [each for each in asked if each.subject == asked[0].subject]
    assert quick.chosen(one) == one[: quick.EACH]


def test_each_section_asks_what_it_states_and_the_rest_is_below_the_program(bank):
    """On the source: no cell moves, no question is lost or asked twice, and each is before the next heading."""
    notebook = nbformat.read(ROOT / f"notebooks/{bank.slug}.ipynb", as_version=4)
    notebook.cells.append(new_markdown_cell(tries.HEADING))
    before = nbformat.from_dict(notebook)
    asking.ask(ROOT, bank.slug, notebook)
    folds = [re.findall(r'<details class="quick">.*?(?=\n`{7})', cell.source, re.S) for cell in notebook.cells]
    found = [fold for each in folds for fold in each]
    asked = quick.questions(bank.source, bank.exact, bank.mutants)
    assert sum(fold.count("What is it at") for fold in found) == len(asked)
    assert len(found) >= 4
    assert all(fold.count("What is it at") <= quick.EACH for fold in found[:-1])
    assert all(bank.of[words] for words in bank.of if words in "".join(found[:-1]))
    for old, new, fold in zip(before.cells, notebook.cells, folds, strict=True):
        assert len(fold) <= 1
        bare = re.sub(r"`{7}\{raw\} html\n.*?\n`{7}\n\n", "", f"{new.source}\n\n", flags=re.S)
        assert bare.strip() == old.source.strip()
    with pytest.raises(UserError, match=r"its tasks name [\w-]+, which no section states"):
        asking.ask(ROOT, bank.slug, nbformat.v4.new_notebook(cells=[new_markdown_cell(tries.HEADING)]))


def test_the_wrong_values_of_a_quick_question_are_those_nearest_to_the_right_one(bank, monkeypatch):
    shown = quick.questions(bank.source, bank.exact, bank.mutants)
    monkeypatch.setattr(quick, "OPTIONS", 99)
    for few, every in zip(shown, quick.questions(bank.source, bank.exact, bank.mutants), strict=True):
        right = flat(few.subject.value(pencil(bank.source), few.point))[0]
        near, all_of_them = (
            sorted(abs(float(option.value) - right) for option in each.options if option.misread)
            for each in (few, every)
        )
        assert near == pytest.approx(all_of_them[: len(near)], rel=0.01, abs=0.006 * abs(right) + 1e-9)
    assert any(len(few.options) < quick.OPTIONS for few in shown)


def test_no_sign_is_the_answer_nearly_always(bank):
    went = [came(pencil(bank.source), tasks.forecasts(bank, who)[0])[0] for who in NAMES[:300]]
    assert max(map(went.count, SIGNS)) < 0.6 * len(went)


def test_a_name_draws_other_letters_in_other_chapters():
    letters = {tasks.case(tasks.bank(ROOT, slug), "Ada").guilty for slug in SLUGS}
    assert len(letters) > 1


def test_every_letter_is_guilty_about_equally_often(bank):
    guilty = [tasks.case(bank, who).guilty for who in NAMES]
    assert all(200 < guilty.count(letter) < 300 for letter in range(tasks.CALLABLES))


def test_what_chance_decides_is_forecast_and_no_more():
    held = tasks.bank(ROOT, "homogenized")
    assert any(each.by_chance for each in held.subjects)
    assert not any(each.by_chance for who in NAMES[:50] for each in tasks.case(held, who).subjects)


def test_notebooks_run_with_an_honest_answer(tmp_path):
    root, slug, lot = ROOT, "sinkhorn", "Ada word"
    held = tasks.bank(root, slug)
    drawn = tasks.case(held, lot)
    made = [nbformat.read(path, as_version=4) for path in tasks.write(root, slug, "S", "Ada", lot, tmp_path)]
    predict, mutant, run = made
    right = drawn.subjects[drawn.guilty].value(pencil(held.source), drawn.mutant.witness)
    said = ", ".join(f"{name}={value}" for name, value in drawn.mutant.witness.items())
    mutant.cells[-2].source = f'court.charge("{"ABCD"[drawn.guilty]}", {right!r}, {said})'
    idle = nbformat.from_dict(mutant)
    idle.cells[-2].source = tasks.mutant(held, "S", "Ada", lot).cells[-2].source
    early = nbformat.from_dict(run)
    with pytest.raises(CellExecutionError, match="seal a forecast first"):
        NotebookClient(early, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for notebook, out in (
        (idle, "0 of 10 points: there is no callable"),
        (predict, ""),
        (run, "of 3 points, sealed 20"),
        (mutant, "10 of 10 points: convicted"),
    ):
        NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()
        assert out in "".join(each.get("text", "") for cell in notebook.cells for each in cell.get("outputs", []))
    nothing = "".join(each.get("text", "") for cell in run.cells[1:] for each in cell.get("outputs", []))
    assert nothing.count("\n0.00 of 3 points") == tasks.FORECASTS
    assert {path.name for path in tmp_path.glob("forecast-*.json")} == {f"forecast-{k}.json" for k in range(1, 6)}
    shown = "".join(cell.source for cell in mutant.cells)
    assert drawn.mutant.change.after not in shown
    assert drawn.mutant.change.after in tasks.key(held, "Ada", lot)["has"]


def test_no_code_that_computes_it_is_with_a_forecast(bank):
    """Not in clear text, and not packed: the notebook is its questions, and short."""
    cells = tasks.predict(bank, "S", "Ada", "Ada word").cells
    text = "\n".join(cell.source for cell in cells)
    functions = set(re.findall(r"^def (\w+)", bank.source, re.M))
    assert functions
    assert not [name for name in functions if f"def {name}" in text]
    assert not re.search(r"[\w+/=]{200}", text)
    assert all(f"def {name}(" in tasks.run(bank, "S", "Ada", "Ada word").cells[1].source for name in functions)


def test_an_input_that_a_loop_finds_earns_less_than_the_shortest(bank):
    """The first of the drawn inputs that convicts has less than half of the points, on average over a chapter."""
    earned = []
    for found in bank.mutants:
        subject, names = bank.exact[found.subject], (pencil(bank.source), pencil(found.broken))
        points = (subject.point(random.Random(f"loop {k}")) for k in range(60))
        first = next((point for point in points if convicts(subject, *names, point)), None)
        if first:
            earned.append(worth(length(first), length(found.witness), found.usual))
        assert worth(length(found.witness), length(found.witness), found.usual) == 10
    assert sum(earned) / len(earned) < 5


def test_a_mutation_changes_one_line_and_is_taken_back():
    source = "def f(x):\n    return max(x, 1) * 2 if x < 3 else -x\n\n\ndef g(x):\n    return f(x) + 1\n"
    made = dict(mutants.mutations(source, frozenset({"f"})))
    assert len(made) == 6
    assert all("def g(x):\n    return f(x) + 1" in text for text in made)
    assert ("f", "max(x, 1)", "min(x, 1)") in made.values()
    assert ("f", "x < 3", "x < 4") in made.values()  # a number with what it is part of
    assert mutants.called(source, "g(x)") == {"f", "g"}
    assert json.dumps(pack(source, (), 0, source, 1, 2))


def test_one_command_writes_what_student_and_tutor_get(tmp_path, monkeypatch):
    monkeypatch.setattr(House, "build", tmp_path)
    made = tasks.make(House(ROOT), ["sinkhorn"], ["Ada"])
    names = {str(path.relative_to(tmp_path / "tasks/sinkhorn")) for path in made}
    assert names == {
        "quick.html",
        "Ada-predict.ipynb",
        "Ada-mutant.ipynb",
        "tutor/Ada-run.ipynb",
        "tutor/oral.md",
        "tutor/Ada-oral.md",
        "tutor/key.md",
    }
    key, mutant = tmp_path / "tasks/sinkhorn/tutor/key.md", tmp_path / "tasks/sinkhorn/Ada-mutant.ipynb"
    told, asked = key.read_text("utf-8"), mutant.read_text("utf-8")
    assert told.count("\n| Ada | ") == 1
    word = re.search(r"`--word (\w{8})`", told)[1]
    tasks.make(House(ROOT), ["sinkhorn"], ["Ada"])
    assert (key.read_text("utf-8"), mutant.read_text("utf-8")) != (told, asked), "drawn again without the word"
    tasks.make(House(ROOT), ["sinkhorn"], ["Ada"], word)
    assert (key.read_text("utf-8"), mutant.read_text("utf-8")) == (told, asked)
    with pytest.raises(UserError, match="makes no file name"):
        tasks.make(House(ROOT), ["sinkhorn"], ["../Ada"])
