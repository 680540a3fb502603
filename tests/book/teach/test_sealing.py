"""The wheel of a class judges as the package does, and has no answer that could be read or called."""

import ast
import base64
import hashlib
import importlib
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from derived.book.site.downloads import build_wheel
from derived.book.teach import sealing
from derived.lab.exercises import Derive, Exercise, judged, number
from derived.lab.sealed import Known, Sealed, digests, key

ROOT = Path(__file__).parents[3]
SLUGS = ("in_place_ttt", "ols_attention", "task_ecologies")  # the quickest; every chapter's source is read below


def loaded(slug: str, source: str) -> types.ModuleType:
    module = types.ModuleType(f"derived.papers.{slug}.exercises")
    module.__package__, module.__file__ = f"derived.papers.{slug}", str(ROOT / "exercises.py")
    exec(compile(source, str(ROOT / f"src/derived/papers/{slug}/exercises.py"), "exec"), module.__dict__)
    return module


def parts(held) -> list[Exercise]:
    return [held] if isinstance(held, Exercise) else [*held]


@pytest.fixture(scope="module", params=SLUGS)
def both(request):
    """A paper's exercises as they are, and sealed."""
    slug = request.param
    whole = importlib.import_module(f"derived.papers.{slug}.exercises")
    return whole, loaded(slug, sealing.sealed(slug, Path(whole.__file__).read_text("utf-8")))


def computed(part: Derive):
    return lambda **point: number(part.right(**point))


def test_what_is_right_is_right_to_digests_and_what_is_wrong_is_wrong(both):
    whole, closed = both
    for label, held in whole.EXERCISES.items():
        for part, shut in zip(parts(held), parts(closed.EXERCISES[label]), strict=True):
            if not isinstance(part, Derive):
                assert not shut.mistakes
                continue
            assert isinstance(shut.right, Sealed)
            assert [*shut.mistakes] == [*part.mistakes]
            assert all(isinstance(each, Known) for each in shut.mistakes.values())
            if part.draw is None:
                assert judged(label, shut, part.right() if callable(part.right) else part.right) == "right"
            for who in ("", "Ada") if part.draw else ():  # it is right, and refused since it calls the package
                assert judged(label, shut, computed(part), who).startswith("not right: that is the package's own")
            for words, mistake in part.mistakes.items():
                value = mistake() if part.draw is None and callable(mistake) else mistake
                assert judged(label, shut, value) == f"{judged(label, part, value)}", words


def test_what_only_the_answers_need_is_gone(both):
    whole, closed = both
    private = {name for name, value in vars(whole).items() if isinstance(value, types.FunctionType)}
    assert private - {*vars(closed)} or whole.__name__.endswith("ols_attention.exercises")
    with pytest.raises(KeyError):
        next(each.right for held in closed.EXERCISES.values() for each in parts(held) if isinstance(each, Derive))(x=0)


def test_digests_take_a_number_within_a_unit_of_its_last_digit():
    right = digests(np.array([[0.1234, -12.34], [0.0, np.inf]]), 3)
    assert right.near(np.array([[0.123, -12.3], [0.0, np.inf]]))
    assert right.near(np.array([[0.1238, -12.37], [0.0, np.inf]])), "half a unit, over the middle between two multiples"
    assert right.near(np.array([[0.1231, -12.25], [0.0, np.inf]]))
    assert not right.near(np.array([[0.126, -12.3], [0.0, np.inf]]))
    assert not right.near(np.array([[0.123, 12.3], [0.0, np.inf]]))
    assert not right.near(np.array([[0.123, -12.3], [0.01, np.inf]]))
    assert not right.near(np.array([[0.123, -12.3], [0.0, -np.inf]]))


def test_a_point_is_known_by_the_names_and_the_numbers_of_its_arguments():
    point = {"beta": 2.0, "x": torch.tensor([1.0, -3.0], dtype=torch.float64).requires_grad_()}
    assert key(point) == key({"x": np.array([1, -3]), "beta": 2}), "numbers and arrays of any kind, in any order"
    assert (
        len({key(each) for each in (point, point | {"beta": 3.0}, point | {"x": 1.0}, {"b": 2.0, "x": point["x"]})})
        == 4
    )
    found = Sealed({key(point): digests(np.array([0.5]), 3)})(**point)
    assert [found.near(np.array([given])) for given in (0.5, 0.501, 0.499, 0.502, 0.498)] == [True] * 3 + [False] * 2


def test_every_paper_in_a_sealed_wheel_has_digests_and_the_wheel_is_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(sealing, "_found", lambda label, *given: {label: ()})  # minutes of digests are tested above
    wheel = build_wheel(ROOT, tmp_path)
    sealing.seal(wheel)
    with zipfile.ZipFile(wheel) as opened:
        files = {name: opened.read(name) for name in opened.namelist()}
    ours = [name for name in files if name.endswith("/exercises.py") and "/papers/" in name]
    assert len(ours) == 10
    for name in ours:
        assert b"Derive(Sealed(" in files[name]
        calls = [node for node in ast.walk(ast.parse(files[name])) if isinstance(node, ast.Call)]
        made = [call for call in calls if ast.unparse(call.func) in ("Derive", "Implement")]
        assert made
        for call in made:
            held = {each.arg: each.value for each in call.keywords}
            assert (ast.unparse(call.func) == "Implement") != ("mistakes" in held)
            wrong = held["mistakes"].values if "mistakes" in held else []
            assert all(ast.unparse(each).startswith("Known(") for each in wrong)
    record = next(name for name in files if name.endswith("RECORD"))
    for line in files[record].decode().splitlines():
        name, digest, size = line.rsplit(",", 2)
        if digest:
            held = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).decode().rstrip("=")
            assert (digest, int(size)) == (f"sha256={held}", len(files[name]))
