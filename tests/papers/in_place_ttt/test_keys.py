"""Keys of trained models: cosines, the matrices whose inputs they are, the measure and the figure."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn.functional import cosine_similarity
from transformers import BertConfig, BertModel, Qwen3Config, Qwen3Model

from derived.lab.experiment import run_condition
from derived.lab.real import pinned
from derived.lab.rng import stream
from derived.papers.in_place_ttt.keys import CLAIMS, LAST, GatedKeys, TrainedKeys, cosines, keys_of, raised


def test_cosines_are_those_of_pairs_of_unlike_tokens():
    own, ids = torch.randn(9, 5, generator=stream(0, "keys")).double() + 1, torch.tensor([0, 1, 2] * 3)
    pairs = [(i, j) for i in range(9) for j in range(9) if ids[i] != ids[j]]
    for found, each in zip(cosines(own, ids), (own, own - own.mean(dim=0)), strict=True):
        by_hand = sum(float(cosine_similarity(each[i], each[j], dim=0)) for i, j in pairs) / len(pairs)
        assert found == pytest.approx(by_hand)


def test_the_matrices_are_the_last_ones_of_the_mlps_and_their_keys_what_they_multiply():
    sizes = {"vocab_size": 9, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2}
    bert = BertModel(BertConfig(**sizes, num_attention_heads=2)).eval()
    qwen = Qwen3Model(Qwen3Config(**sizes, num_attention_heads=2, num_key_value_heads=1, head_dim=4)).eval()
    for model in (bert, qwen):
        layers = [each for name, each in model.named_modules() if name.endswith(LAST) and "attention" not in name]
        assert [tuple(each.weight.shape) for each in layers] == [(8, 12)] * 2
        with torch.no_grad(), keys_of(layers) as seen:
            model(torch.arange(5).unsqueeze(0))
            model(torch.arange(3).unsqueeze(0))
        assert [[tuple(key.shape) for key in each] for each in seen] == [[(1, 5, 12)] * 2, [(1, 3, 12)] * 2]
        assert not layers[0]._forward_pre_hooks


def table(trained: float, fresh: float) -> pd.DataFrame:
    found = [
        {"weights": weights, "layer": layer, "replicate": r, "cosine": value + 0.01 * layer + 0.002 * (r % 2)}
        for weights, value in (("trained", trained), ("fresh", fresh))
        for layer in (0, 1)
        for r in range(6)
    ]
    return pd.DataFrame(found).assign(recorded=True, tier="cpu")


def test_training_is_compared_on_the_same_texts():
    (claim,) = CLAIMS
    assert raised(table(0.4, 0.2)).value == pytest.approx(0.2)
    assert claim.judge(claim.measure(table(0.4, 0.2)))[0] == "holds"
    assert claim.judge(claim.control(table(0.4, 0.2)))[0] == "fails"


@pytest.mark.skipif(bool(pinned.missing(TrainedKeys.needs)), reason="the model is not here")
def test_rows_of_the_model_itself():
    rows = run_condition(TrainedKeys.at("tiny"), {"weights": "trained"}, 0, "cpu")
    assert len(rows) == 4 * 6
    assert np.isfinite(rows[["cosine", "centred"]]).all(axis=None)
    assert rows["cosine"].mean() > 0.1 > abs(rows["centred"].mean())
    assert [each["weights"] for each in GatedKeys().conditions()] == ["trained", "fresh"]
