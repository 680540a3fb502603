"""The page "The package": its names are those that the packages offer."""

import importlib
import json

import pytest

from bookbuilder.index_pages import reference
from bookbuilder.paths import find_repo


@pytest.mark.parametrize("slug", find_repo().chapters())
def test_all_public_names_lead_to_what_they_do(slug):
    root, package = find_repo().root, importlib.import_module(f"derived.papers.{slug}")
    names = reference.public(root / f"src/derived/papers/{slug}/__init__.py")
    assert sorted(names) == sorted(package.__all__)
    text = reference.page(root, [(slug, "A title"), ("no_such_paper", "Another")])
    assert all(f"{{py:obj}}`~derived.papers.{slug}.{name}`" in text for name in names)
    assert "Another" not in text
    assert f"(../packages/{slug}.md)" in text


def test_each_package_has_a_page_of_its_own(tmp_path):
    root = find_repo().root
    slug = find_repo().chapters()[0]
    reference.write(root, tmp_path, [(slug, "A title"), ("no_such_paper", "Another")])
    (page,) = (tmp_path / reference.FOLDER).iterdir()
    assert page.name == f"{slug}.md"
    assert f".. automodule:: derived.papers.{slug}" in page.read_text("utf-8")


def test_the_race_that_is_lost_by_most_comes_first(tmp_path):
    for slug, ratio in (("won", 3.0), ("lost", 0.5)):
        (tmp_path / "results" / slug).mkdir(parents=True)
        rows = [{"threads": threads, "ratio": ratio, "ratio_low": 0.4, "ratio_high": 4.0} for threads in (1, 2)]
        facts = {"name": "a sum", "peer": "numpy", "note": "It checks.", "dtype": "float32", "measured": rows}
        (tmp_path / "results" / slug / "bench.json").write_text(json.dumps(facts))
    *_, first, last = reference.races(tmp_path, [("won", "Won"), ("lost", "Lost"), ("never", "Never")]).splitlines()
    assert first == "| Lost | a sum, float32 | numpy. It checks. | 1: 0.50 [0.40, 4.00]; 2: 0.50 [0.40, 4.00] |"
    assert last.startswith("| Won |")
