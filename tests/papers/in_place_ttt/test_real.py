"""Topic real: keys and matrices of a trained model, on small models with a known answer and on the model itself."""

import math

import pandas as pd
import pytest
import torch
from here import needs
from torch.nn.functional import cosine_similarity
from transformers import BertConfig, BertModel, Qwen3Config, Qwen3Model

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.in_place_ttt.claims.real import CLAIMS
from derived.papers.in_place_ttt.experiments.real import TrainedKeys, cosines, down_projections, keys_of
from derived.papers.in_place_ttt.figures.real import keys


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


@needs("minilm", "austen")
def test_rows_of_the_model_itself():
    rows = run_experiment(TrainedKeys.at("tiny"), seed=0, device="cpu").assign(tier="ci", recorded=False)
    assert rows.groupby(["weights", "replicate", "layer"]).ngroups == 2 * 2 * 6
    assert rows[["cosine", "centred"]].stack().between(-1, 1).all()
    trained, fresh = (rows[rows["weights"] == weights]["std"].mean() for weights in ("trained", "fresh"))
    assert trained > 1.5 * fresh  # the start of BERT is 0.02
    for claim in CLAIMS:
        assert math.isfinite(claim.measure(rows).value)
        assert math.isfinite(claim.null(rows).value)


def test_the_figure_says_in_words_what_it_shows(tells):
    rows = pd.DataFrame(
        {"weights": weights, "layer": layer, "replicate": r, "cosine": cosine + layer / 10, "centred": -0.01}
        for weights, cosine in (("fresh", 0.4), ("trained", 0.1))
        for layer in (0, 1)
        for r in range(3)
    )
    words = ("before training 0.40 to 0.50", "trained 0.10 to 0.20", "mean subtracted -0.01")
    tells(keys(rows.assign(recorded=True, tier="cpu")), *words)
