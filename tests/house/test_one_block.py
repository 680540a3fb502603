"""One block, ten changes: what composes is really run, and what undoes a change is found."""

import json
import re

import pytest

from bookbuilder.paths import find_repo
from bookbuilder.run.driver import cells_code

REPO = find_repo()


@pytest.fixture(scope="module")
def page():
    """The names of the notebook after its cells have run, which check each change by themselves."""
    names: dict = {"__name__": "one_block"}
    notebook = json.loads(REPO.notebook("one_block").read_text("utf-8"))
    exec(compile(cells_code("one_block", notebook), "one_block", "exec"), names)
    return names


def held(page, kind, gap=0.0):
    """A change with a property that is ``gap`` off."""
    page["PROPERTIES"][kind] = lambda model: (gap, 0.0)
    return kind


def test_there_is_a_change_for_each_chapter_in_the_order_of_the_book(page):
    cells = json.loads(REPO.notebook("one_block").read_text("utf-8"))["cells"]
    table = next("".join(cell["source"]) for cell in cells if "| chapter |" in "".join(cell["source"]))
    places = [table.index(f"notebooks/{slug}.ipynb") for slug in REPO.chapters()]
    assert places == sorted(places)
    assert len(page["CHANGES"]) == len(REPO.chapters())
    marks = sorted({mark for parts in page["PARTS"].values() for mark in parts.values()})
    assert marks == list(range(1, 1 + len(REPO.chapters())))


def test_the_picture_marks_the_part_that_a_change_overrides(page):
    parts = {mark: part for parts in page["PARTS"].values() for part, mark in parts.items()}
    for place, change in enumerate(page["CHANGES"], 1):
        assert parts[place] in vars(change)


def test_the_project_has_a_week_for_each_change_between_the_plain_block_and_two_together(page):
    cells = json.loads(REPO.notebook("one_block").read_text("utf-8"))["cells"]
    plan = next("".join(cell["source"]) for cell in cells if "| week |" in "".join(cell["source"]))
    weeks = re.findall(r"^\| (\d+) \| (?:`(\w+)`|two of yours that compose) \|", plan, re.M)
    changes = [each.__name__ for each in page["CHANGES"]]
    assert weeks == [(str(week), name) for week, name in enumerate(["Plain", *changes, ""])]
    assert sum(map(int, re.findall(r"^- (\d+) points:", plan, re.M))) == 10


def test_changes_of_different_places_compose_in_either_order(page):
    write, score = page["InPlaceTTT"], page["Hierarchical"]
    for changes in ((write, score), (score, write)):
        model, sign = page["compose"](*changes)
        assert sign == "✓"
        assert [name for name in page["SHAPES"] if getattr(model, name).grad is None] == ["W_Q", "W_K"]


def test_one_of_two_changes_of_what_a_token_reads_replaces_the_other(page):
    assert page["compose"](page["DoublyStochastic"], page["Averaging"])[1] == "–"


def test_a_change_that_undoes_another_is_found_and_so_is_a_look_ahead(page):
    class Doubled(page["Plain"]):
        def block(self, x):
            return 2 * super().block(x) + 0 * super().mlp(x).mean(dim=-2, keepdim=True)

    class Ahead(page["Plain"]):
        def mlp(self, x):
            return super().mlp(x) + x.mean(dim=-2, keepdim=True)

    assert page["compose"](held(page, Doubled), page["Sphere"])[1] == "✗"
    assert page["compose"](page["Sphere"], page["NeighbouringCodes"])[1] == "✓"
    assert page["compose"](page["Sphere"], held(page, Ahead))[1] == "○"


def test_a_number_that_is_not_finite_stops_it(page):
    class Broken(page["Plain"]):
        def add(self, x, change):
            return x + change / 0

    with pytest.raises(ValueError, match=r"Broken.*not finite"):
        page["compose"](held(page, Broken))


def test_a_change_without_its_property_and_a_plain_block_with_it_are_refused(page):
    class Idle(page["Plain"]):
        def norm(self, x):
            return super().norm(x)

    with pytest.raises(AssertionError, match="times its bound"):
        page["hold"](Idle, lambda model: (1.0, 0.5))
    with pytest.raises(AssertionError, match="Plain lacks it"):
        page["hold"](Idle, lambda model: (0.0, 0.5))
    del page["PROPERTIES"][Idle]


def test_the_largest_sets_are_those_of_which_any_two_compose(page):
    two = {page["Cactus"], page["DoublyStochastic"]}
    pairs = {pair: "✓" if two & {*pair} else "–" for pair in page["pairs"]}
    names = page | {"pairs": pairs}
    found = type(page["largest_sets"])(page["largest_sets"].__code__, names)()
    assert found
    assert all(len(each) == 3 and two < {*each} for each in found)
