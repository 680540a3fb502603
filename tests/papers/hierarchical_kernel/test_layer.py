"""The layer: random instances and their rounding, entries counted, kernels that it computes (HKT-1, 2, 6)."""

import pandas as pd
import torch

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.claims import CLAIMS
from derived.papers.hierarchical_kernel.experiments.instances import normal, random_layers, score_rounding
from derived.papers.hierarchical_kernel.experiments.layer import Agreement, Convolution, Entries
from derived.papers.hierarchical_kernel.figures.layer import mutations
from derived.papers.hierarchical_kernel.model import theory
from derived.papers.hierarchical_kernel.model.layers import HKTAttention

CLAIM = {one.id: one for one in CLAIMS}
EXPERIMENTS = (Entries, Agreement, Convolution)
SMALL = {Entries: {"longest": 20}, Agreement: {"instances": 3}, Convolution: {"grid": 41, "instances": 3}}


def test_random_layers_draw_every_weight():
    layers = random_layers(3, 8, 2, 3, generator=stream(0, "every"), dtype=torch.float64)
    assert isinstance(layers, HKTAttention)
    for weight in layers.parameters():
        assert weight.flatten(1).std(dim=1).min() > 0
        assert not torch.equal(weight[0], weight[1])


def test_score_rounding_covers_a_float32_layer_and_is_not_absurd():
    for dtype in (torch.float32, torch.float64):
        layers = random_layers(4, 6, 1, 3, generator=stream(0, "rounding"), dtype=torch.float64)
        x = normal((4, 9, 6), stream(0, "x"))
        with torch.no_grad():
            q, k, alpha = layers.scores.features(x)
        bound = score_rounding([a.to(dtype) for a in q], [b.to(dtype) for b in k], alpha.to(dtype))
        assert (bound > 0).all()
        assert (bound < 1e4 * torch.finfo(dtype).eps).all()


def test_whole_numbers_catch_one_entry_too_many():
    good = pd.DataFrame({"T": [4, 8, 12], "levels": [3, 3, 3], "entries": [21, 84, 189]})
    assert CLAIM["HKT-1.b"].measure(good).value == 0
    assert CLAIM["HKT-1.b"].measure(good.assign(entries=good["entries"] + 1)).value == 48
    assert CLAIM["HKT-1.a"].measure(good).value == 1.3125


def test_one_level_must_not_see_a_third_token_at_all():
    table = pd.DataFrame({"levels": [1, 1, 2, 3], "sensitivity": [0.0, 0.0, 0.4, 0.3]})
    assert CLAIM["HKT-6.b"].measure(table).value == 0.3
    table.loc[1, "sensitivity"] = 1e-12
    assert CLAIM["HKT-6.b"].measure(table).value == -1e-12


def test_rank_is_measured_only_where_its_bound_says_something(rows):
    found = rows[Agreement].query("check == 'rank'")
    assert set(found["T"]) == {32, 45}


def test_one_layer_is_one_instance_however_often_it_is_checked():
    checks = ["fused", "padded", "fused", "rank"]
    table = pd.DataFrame({"check": checks, "T": 4, "instance": [0, 0, 1, 2], "gap": [1.0, 3, 2, 9], "bound": 2.0})
    found = CLAIM["HKT-2.a"].measure(table)
    assert (found.value, found.n) == (1.5, 2)


def test_the_claims_on_convolutions_notice_another_kernel(rows):
    """`hkt-convolution`: each row is held against its closed form from both sides."""
    table = rows[Convolution]
    assert (table.groupby("kernel")["bound"].max() < 1e-4).all()
    for id in ("HKT-6.d", "HKT-6.f", "HKT-6.g", "HKT-6.h"):
        measure = CLAIM[id].measure
        assert measure(table).value <= 1
        for sign in (1, -1):
            assert measure(table.assign(distance=table["closed"] + sign * 1e-3)).value > 1


def test_whole_blocks_have_the_rounded_down_number_of_rows(rows):
    """`hkt-cost`: the tables counted over whole blocks against floor(T / 2^l)."""
    for _, row in rows[Entries].iterrows():
        sizes = theory.level_rows(int(row["T"]), int(row["levels"]), "down")
        assert row["entries_down"] == sum(size**2 for size in sizes)


def test_the_figure_of_mutations_says_how_far_each_goes(words_of):
    rows = pd.DataFrame({"change": ["none", "no mask"], "effect": [0.0, 0.5]})
    assert "no mask 0.5" in words_of(mutations(rows))
