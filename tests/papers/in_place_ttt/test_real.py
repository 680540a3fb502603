"""Topic real: keys and matrices of a trained model, on small models with a known answer and on the model itself."""

import math

import pandas as pd
import pytest
import torch
from here import needs
from torch import nn
from torch.nn.functional import cosine_similarity
from transformers import BertConfig, BertModel, Qwen3Config, Qwen3Model

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.in_place_ttt.claims.real import (
    CLAIMS,
    fresh_on_other_texts,
    moved_by_another_draw,
    moved_by_training,
)
from derived.papers.in_place_ttt.experiments.real import (
    GatedKeys,
    RawWrites,
    TrainedKeys,
    cosines,
    down_projections,
    keys_of,
)
from derived.papers.in_place_ttt.figures.real import keys
from derived.papers.in_place_ttt.model.module import InPlaceTTTMLP


def test_cosines_are_those_of_pairs_of_unlike_tokens():
    own, ids = torch.randn(9, 5, generator=stream(0, "keys")).double() + 1, torch.tensor([0, 1, 2] * 3)
    pairs = [(i, j) for i in range(9) for j in range(9) if ids[i] != ids[j]]
    for found, each in zip(cosines(own, ids), (own, own - own.mean(dim=0)), strict=True):
        assert found == pytest.approx(
            sum(float(cosine_similarity(each[i], each[j], dim=0)) for i, j in pairs) / len(pairs)
        )


def test_the_matrices_are_the_last_ones_of_the_mlps_and_their_keys_what_they_multiply():
    sizes = {"vocab_size": 9, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2}
    bert = BertModel(BertConfig(**sizes, num_attention_heads=2)).eval()
    qwen = Qwen3Model(Qwen3Config(**sizes, num_attention_heads=2, num_key_value_heads=1, head_dim=4)).eval()
    for model in (bert, qwen):
        layers = down_projections(model)
        assert [tuple(each.weight.shape) for each in layers] == [(8, 12)] * 2
        with torch.no_grad(), keys_of(layers) as seen:
            model(torch.arange(5).unsqueeze(0))
            model(torch.arange(3).unsqueeze(0))
        assert [[tuple(key.shape) for key in each] for each in seen] == [[(1, 5, 12)] * 2, [(1, 3, 12)] * 2]
        assert not layers[0]._forward_pre_hooks


def test_a_write_is_counted_as_theory_says():
    weight = 0.02 * torch.randn(300, 1000, generator=stream(0, "weight"))
    weight[0] = 0
    std, changed, by_more, theory = TrainedKeys(tau=1e-3).written(weight, stream(0, "write"))
    assert std == pytest.approx(0.02, rel=0.01)
    assert changed == pytest.approx(theory, abs=4 * math.sqrt(theory / 300_000))
    assert by_more > 0.9


def gated(d: int = 5, h: int = 7) -> nn.Module:
    mlp = nn.Module()
    mlp.gate_proj, mlp.up_proj, mlp.down_proj = nn.Linear(d, h), nn.Linear(d, h), nn.Linear(h, d)
    mlp.act_fn = nn.SiLU()
    return mlp.requires_grad_(False)


@torch.no_grad()
def test_an_arm_writes_what_it_says():
    """Slow twin: each token of an earlier chunk adds the input at the next one of its chunk under its own key."""
    experiment = RawWrites(length=12, chunk=4, block=4)
    layer = InPlaceTTTMLP.from_mlp(gated(), chunk=4, projection=False)
    x = torch.randn(1, 12, 5, generator=stream(0, "inputs"))
    keys = layer.act_fn(layer.gate_proj(x)) * layer.up_proj(x)

    def added(arm: str) -> torch.Tensor:
        experiment.prepare(layer, arm, 0.3, stream(0, "order"))
        return layer(x) - layer.down_proj(keys)

    assert added("start").abs().max() == 0
    for arm in ("raw", "shuffled"):
        found, sources = added(arm)[0], x[0, layer.order]
        for n in range(12):
            W = torch.zeros(5, 7)
            for t in range(n // 4 * 4):
                if (t + 1) % 4:
                    W += 0.3 * torch.outer(sources[t + 1], keys[0, t])
            assert torch.allclose(found[n], W @ keys[0, n], atol=1e-5)
        assert torch.allclose(layer.ratio, found.norm(dim=-1) / layer.down_proj(keys)[0].norm(dim=-1), atol=1e-5)
        assert (layer.order // 4 == torch.arange(12) // 4).all()
        assert torch.equal(layer.order.sort().values, torch.arange(12))
        assert torch.equal(layer.order, torch.arange(12)) == (arm == "raw")
    assert 0 < added("clipped").norm() < 1e-3
    assert layer.tau == experiment.tau


@needs("austen", "stdlib")
def test_pieces_are_of_different_speeches():
    pieces = RawWrites(pieces=16, length=64).read("speeches", 0)
    assert {len(piece) for piece in pieces} == {8 * 64}
    assert len(set(pieces)) == 16
    whole = RawWrites(length=64).long_speeches(8 * 64)
    assert len({next(i for i, text in enumerate(whole) if piece in text) for piece in pieces}) == 16


@needs("gemma", "austen", "stdlib")
def test_rows_of_a_language_model():
    rows = run_experiment(RawWrites.at("tiny"), seed=0, device="cpu").assign(tier="ci", recorded=False)
    assert rows.groupby(["texts", "arm", "replicate"]).ngroups == 2 * 4 * 2
    assert (rows[rows["arm"] == "start"]["moved"] == 0).all()
    assert rows["base"].between(2, 6).all()  # nats per token of English text after little context
    by_id = {claim.id: claim for claim in CLAIMS}
    for name in ("IPT-17.d", "IPT-17.e"):
        assert math.isfinite(by_id[name].measure(rows).value)
        assert math.isfinite(by_id[name].null(rows).value)


@needs("minilm", "austen")
def test_rows_of_the_model_itself():
    rows = run_experiment(TrainedKeys.at("tiny"), seed=0, device="cpu").assign(tier="ci", recorded=False)
    assert rows.groupby(["weights", "replicate", "layer"]).ngroups == 3 * 4 * 6
    assert rows[["cosine", "centred"]].stack().between(-1, 1).all()
    trained, fresh = (rows[rows["weights"] == weights]["std"].mean() for weights in ("trained", "fresh"))
    assert trained > 1.5 * fresh  # the start of BERT is 0.02
    for claim in CLAIMS:
        if issubclass(claim.experiment, TrainedKeys):
            assert math.isfinite(claim.measure(rows).value)
            assert math.isfinite(claim.null(rows).value)
    assert GatedKeys.at("tiny").model == "gemma"


def test_the_figure_says_in_words_what_it_shows(tells):
    rows = pd.DataFrame(
        {"weights": weights, "layer": layer, "replicate": r, "cosine": cosine + layer / 10, "centred": -0.01}
        for weights, cosine in (("fresh", 0.4), ("trained", 0.1))
        for layer in (0, 1)
        for r in range(3)
    )
    words = ("before training 0.40 to 0.50", "trained 0.10 to 0.20", "mean subtracted -0.01")
    tells(keys(rows.assign(recorded=True, tier="cpu")), *words)


def test_training_is_compared_with_two_draws_of_fresh_weights_on_the_same_texts():
    cosine = {"trained": 0.3, "fresh": 0.1, "again": 0.15}
    table = pd.DataFrame(
        {"weights": weights, "replicate": r, "layer": layer, "cosine": value + 0.01 * r + 0.1 * layer}
        for weights, value in cosine.items()
        for r in range(6)
        for layer in range(2)
    )
    assert moved_by_training(1, "fresh")(table).value == pytest.approx(0.2)
    assert moved_by_training(1, "fresh", "again")(table).value == pytest.approx(0.15)
    assert moved_by_training(-1, "fresh", "again")(table).value == pytest.approx(-0.2)
    null = moved_by_another_draw(table)
    assert (null.n, null.value) == (6, pytest.approx(0.05))
    assert moved_by_another_draw(table.assign(cosine=-table["cosine"])).value == pytest.approx(0.05)
    null = fresh_on_other_texts(table)
    assert (null.n, null.value) == (3, pytest.approx(-0.01))
