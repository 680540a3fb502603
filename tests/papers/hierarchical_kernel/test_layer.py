"""The layer: random instances and their rounding, entries counted, kernels that it computes (HKT-1, 2, 6)."""

import pandas as pd
import torch

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.claims import CLAIMS
from derived.papers.hierarchical_kernel.experiments.instances import normal, random_layers, score_rounding, worst_entry
from derived.papers.hierarchical_kernel.experiments.layer import Agreement, Convolution, Entries
from derived.papers.hierarchical_kernel.model import theory
from derived.papers.hierarchical_kernel.model.attention import mix, score_tables
from derived.papers.hierarchical_kernel.model.layers import HKTAttention
from derived.papers.hierarchical_kernel.model.mutations import HARMLESS, damage, mutated

CLAIM = {one.id: one for one in CLAIMS}
EXPERIMENTS = (Entries, Agreement, Convolution)


def test_random_layers_draw_every_weight():
    layers = random_layers(3, 8, 2, 3, generator=stream(0, "every"), dtype=torch.float64)
    assert isinstance(layers, HKTAttention)
    for weight in layers.parameters():
        assert weight.flatten(1).std(dim=1).min() > 0
        assert not torch.equal(weight[0], weight[1])


def test_score_rounding_covers_single_precision_and_not_a_wrong_score():
    """Mixed scores of single precision against those of double precision from the same features."""
    layers = random_layers(4, 6, 1, 3, generator=stream(0, "rounding"), dtype=torch.float64)
    with torch.no_grad():
        features = layers.scores.features(normal((4, 9, 6), stream(0, "x")))
    q, k = ([each.float() for each in level] for level in features[:2])
    alpha = features[2].float()
    scores, bound = mix(score_tables(q, k), alpha).double(), score_rounding(q, k, alpha)
    double = [each.double() for each in k]
    exact = mix(score_tables([each.double() for each in q], double), alpha.double())
    gap = worst_entry(scores - exact)
    assert (gap > 0).all()
    assert (gap <= bound).all()
    assert (bound <= 1000 * gap).all()
    wrong = mix(score_tables([each.double() for each in q], [double[0], double[1], 1.001 * double[2]]), alpha.double())
    assert (worst_entry(scores - wrong) > bound).all()


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


def test_every_change_of_the_layer_loses_a_property_and_the_harmless_one_none():
    layers = random_layers(6, 4, 2, 3, generator=stream(1, "broken"), dtype=torch.float64)
    found = damage(layers.scores, normal((6, 8, 4), stream(1, "tokens")))
    future = {"no mask", "the coarse row after the right one"}
    eps = torch.finfo(torch.float64).eps
    for name, lost in found.items():
        assert (lost.future > 1e-3) == (name in future), name
        assert lost.future > 1e-3 or lost.future < 100 * eps, name
        assert (lost.odds > 1e-3) == (name not in {HARMLESS, "no mask"}), name
    assert found[HARMLESS].odds < 1e4 * eps


def test_attention_of_every_change_has_rows_of_sum_one():
    layers = random_layers(2, 4, 1, 2, generator=stream(2, "broken"), dtype=torch.float64)
    for name, A in mutated(layers.scores, normal((2, 6, 4), stream(2, "tokens"))).items():
        assert torch.allclose(A.sum(dim=-1), torch.ones(2, 1, 6).double(), rtol=0, atol=1e-13), name
