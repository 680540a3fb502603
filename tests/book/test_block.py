"""One block, ten changes: each property can be lost, what composes is really run, and the page is made from sources."""

import json
import subprocess

import pytest
import torch

from derived.book.block import compose, page
from derived.book.block.changes import CHANGES
from derived.book.block.plain import VOCABULARY, Plain
from derived.book.block.properties import PROPERTIES
from derived.book.house import UserError
from derived.lab.nets import Draws
from derived.lab.rng import stream

IDS = torch.randint(VOCABULARY, (2, 12), generator=stream(0, "ids"))


def made(kind: type[Plain]) -> Plain:
    return kind(Draws(num_networks=3, dtype=torch.float64))


@pytest.mark.parametrize("slug", CHANGES)
def test_a_property_holds_for_its_change_and_the_plain_block_lacks_it(slug):
    gap, allowed = PROPERTIES[slug](made(CHANGES[slug]), IDS)
    assert gap <= allowed
    if slug != "hierarchical_kernel":  # scores of one resolution know nothing of later tokens either
        gap, allowed = PROPERTIES[slug](made(Plain), IDS)
        assert gap > allowed


def test_a_mixture_of_blocks_that_look_ahead_is_refused():
    model = made(CHANGES["hierarchical_kernel"])
    model.levels.pooling = "block"
    gap, allowed = PROPERTIES["hierarchical_kernel"](model, IDS)
    assert gap > allowed


def test_changes_of_different_places_compose_in_either_order():
    for slugs in (("in_place_ttt", "hierarchical_kernel"), ("hierarchical_kernel", "in_place_ttt")):
        found = compose.compose(slugs)
        assert found.outcome == "composes"
        assert found.causal
        assert found.idle == ("W_Q", "W_K")
        assert set(found.gaps) == set(slugs)


def test_one_of_two_changes_of_what_a_token_reads_replaces_the_other():
    assert compose.compose(("sinkhorn", "stochastic_approximation")).outcome == "replaced"


def test_a_change_that_undoes_another_is_found_and_so_is_a_look_ahead(monkeypatch):
    class Doubled(Plain):
        def block(self, x):
            return 2 * super().block(x) + 0 * super().mlp(x).mean(dim=-2, keepdim=True)

    class Ahead(Plain):
        def mlp(self, x):
            return super().mlp(x) + x.mean(dim=-2, keepdim=True)

    for slug, change in (("doubled", Doubled), ("ahead", Ahead)):
        monkeypatch.setitem(CHANGES, slug, change)
        monkeypatch.setitem(PROPERTIES, slug, lambda model, ids: (0.0, 0.0))
    found = compose.compose(("doubled", "homogenized"))
    assert (found.outcome, found.lost) == ("lost", ("homogenized",))
    assert compose.compose(("homogenized", "geometric_tax")).causal
    assert not compose.compose(("homogenized", "ahead")).causal


def test_a_number_that_is_not_finite_stops_it(monkeypatch):
    class Broken(Plain):
        def add(self, x, change):
            return x + change / 0

    monkeypatch.setitem(CHANGES, "broken", Broken)
    with pytest.raises(ValueError, match=r"Broken.*not finite"):
        compose.compose(("broken",))


def test_the_largest_sets_are_those_of_which_any_two_compose():
    alike = compose.compose(("sinkhorn",))
    pairs = {
        frozenset((one, other)): alike
        if one in ("cactus", "sinkhorn")
        else compose.Composed((), "replaced", (), True, (), {})
        for one, other in compose.itertools.combinations(sorted(CHANGES), 2)
    }
    found = compose.largest(pairs)
    assert found
    assert all(len(each.slugs) == 3 and {"cactus", "sinkhorn"} & set(each.slugs) for each in found)


def test_a_difference_is_made_of_the_sources_without_their_words():
    plain = page._classes(page.HERE / "plain.py")["Plain"]
    found = page.diff(plain, page._changes()["sinkhorn"])
    assert [line[0] for line in found] == [" ", "-", "-", "+"]
    assert "attention_weights(scores, None" in found[-1]
    assert [*page._changes()] == [*CHANGES] == [*PROPERTIES]


def test_the_table_is_kept_until_a_source_changes_and_a_fault_is_one_line(tmp_path, monkeypatch):
    ran = []

    def run(command, **options):
        ran.append(command)
        return subprocess.CompletedProcess(command, 0, json.dumps({"alone": []}), "")

    monkeypatch.setattr(page.subprocess, "run", run)
    assert page.compositions(tmp_path) == page.compositions(tmp_path) == {"alone": []}
    assert len(ran) == 1
    monkeypatch.setattr(page, "file_hash", lambda *_: "another")
    page.compositions(tmp_path)
    assert len(ran) == 2
    for broken in ('{"key": "anoth', "[]", "{}"):
        (tmp_path / page.KEPT).write_text(broken)
        assert page.compositions(tmp_path) == {"alone": []}, "what cannot be read is made anew"
    assert len(ran) == 5
    assert [path.name for path in tmp_path.iterdir()] == [page.KEPT]
    monkeypatch.setattr(page, "file_hash", lambda *_: "a third")
    failed = subprocess.CompletedProcess([], 1, "", "Traceback\nValueError: a number is not finite\n")
    monkeypatch.setattr(page.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(UserError, match=r"^one block: ValueError: a number is not finite$"):
        page.compositions(tmp_path)
