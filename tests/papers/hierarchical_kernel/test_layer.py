"""The layer: random instances and their rounding, and what each change of it loses (HKT-1, 2, 6)."""

import torch

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.instances import normal, random_layers, score_rounding, worst_entry
from derived.papers.hierarchical_kernel.model.attention import mix, score_tables
from derived.papers.hierarchical_kernel.model.layers import HKTAttention
from derived.papers.hierarchical_kernel.model.mutations import HARMLESS, damage, mutated


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


def test_the_bound_of_a_score_adds_up_where_the_terms_cancel():
    """One level of two columns, 3 * 2 - 2 * 3 = 0: rounding is that of 12 over the root of 2, not of zero."""
    q, k, alpha = torch.tensor([[[[3.0, -2.0]]]]), torch.tensor([[[[2.0, 3.0]]]]), torch.ones(1, 1, 1, 1)
    assert mix(score_tables([q], [k]), alpha).item() == 0
    roundings = 2 + 1 + 10
    expected = roundings * torch.finfo(q.dtype).eps * 12 / 2**0.5
    torch.testing.assert_close(score_rounding([q], [k], alpha), torch.tensor([expected]))


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
