"""The programs of *Try it* against the package, run by Python here and in the page by tests/site/test_try.py."""

import ast
from pathlib import Path

import pytest
from answers import TRIES
from solutions import RIGHT, WRONG, answered

from derived.book.house import UserError
from derived.book.page import tries

PENCIL = Path(__file__).parents[2] / "pencil"


@pytest.fixture(params=sorted(TRIES))
def slug(request):
    return request.param


def test_every_pencil_has_a_program():
    assert sorted(TRIES) == sorted(path.stem.removeprefix("try_") for path in PENCIL.glob("try_*.py"))
    assert sorted(TRIES) == sorted(
        path.stem for path in PENCIL.glob("*.py") if not path.stem.startswith(("try_", "exercise_", "pic", "__"))
    )
    assert (
        sorted(TRIES) == sorted(RIGHT) == sorted(path.stem.removeprefix("exercise_") for path in PENCIL.glob("exer*"))
    )


def test_the_program_answers_as_the_package_does(slug):
    one = TRIES[slug]
    text, recorded = tries.run(PENCIL / f"try_{slug}.py")
    assert text
    assert recorded["curves"]
    assert recorded["result"] == pytest.approx(one.answer(one.now), rel=1e-12, abs=1e-12)


def test_an_edit_changes_the_answer_as_it_should(slug, tmp_path):
    one = TRIES[slug]
    for needed in (f"{slug}.py", "picture.py"):
        (tmp_path / needed).write_text((PENCIL / needed).read_text("utf-8"), "utf-8")
    program = (PENCIL / f"try_{slug}.py").read_text("utf-8")
    assert program.count(one.old) == 1
    (tmp_path / f"try_{slug}.py").write_text(program.replace(one.old, one.new), "utf-8")
    after = tries.run(tmp_path / f"try_{slug}.py")[1]["result"]
    assert after == pytest.approx(one.answer(one.after), rel=1e-12, abs=1e-12)
    assert after != pytest.approx(one.answer(one.now), rel=1e-3, abs=1e-3)


def test_what_is_to_be_tried_is_listed(slug):
    lead, things, code = tries.read(PENCIL / f"try_{slug}.py")
    assert lead[-1] in ".?"
    assert things.count("\n- ") == 1
    assert "import" in code.splitlines()[0]
    assert len(code.splitlines()) <= 25


def _said(slug, tmp_path, body=None):
    """What the check of an exercise says of a function body."""
    for needed in (slug, "picture"):
        (tmp_path / f"{needed}.py").write_text((PENCIL / f"{needed}.py").read_text("utf-8"), "utf-8")
    program = (PENCIL / f"exercise_{slug}.py").read_text("utf-8")
    (tmp_path / "it.py").write_text(answered(program, body) if body else program, "utf-8")
    return tries.run(tmp_path / "it.py")[0]


def test_the_check_of_an_exercise_accepts_the_right_answer_and_refuses_mistakes(slug, tmp_path):
    body = RIGHT[slug]
    assert _said(slug, tmp_path) == "no answer yet"
    assert _said(slug, tmp_path, body) == "right"
    assert len(WRONG[slug]) >= 2
    for old, new in WRONG[slug]:
        assert body.count(old) >= 1
        assert _said(slug, tmp_path, body.replace(old, new)).startswith("not right: "), (old, new)


def test_an_exercise_says_what_to_write_and_is_short(slug):
    program = (PENCIL / f"exercise_{slug}.py").read_text("utf-8")
    label, _, words = ast.get_docstring(ast.parse(program)).partition(": ")
    assert f":label: {label}\\n" in (PENCIL.parent / f"notebooks/{slug}.ipynb").read_text("utf-8")
    assert len(words.split()) > 10
    assert len(program.splitlines()) <= 45


def test_a_program_that_fails_is_named_in_one_line(tmp_path):
    program = tmp_path / "try_it.py"
    program.write_text("1 / 0\n", "utf-8")
    with pytest.raises(UserError, match=r"^pencil/try_it\.py: ZeroDivisionError: division by zero$"):
        tries.run(program)
    with pytest.raises(UserError, match="its docstring"):
        tries.read(program)
