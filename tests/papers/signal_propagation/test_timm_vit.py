"""SP-15 on timm's network: the real one where it happens to be installed, and everywhere a stand-in of its shape."""

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.signal_propagation.model import timm_vit
from derived.papers.signal_propagation.model.timm_vit import TimmTransformer
from derived.papers.signal_propagation.model.transformer import BlockWeights, RandomTransformer, equiangular_tokens


def test_where_timm_is_missing_the_error_says_what_to_use(monkeypatch):
    monkeypatch.setattr(timm_vit, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="timm is not installed; use RandomTransformer"):
        TimmTransformer(norm="erf", generator=torch.Generator())


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="norm = 'rms'; give one of"):
        TimmTransformer(norm="rms", generator=torch.Generator())
    with pytest.raises(ValueError, match="depth = 0; give an integer >= 1"):
        TimmTransformer(norm="erf", depth=0, generator=torch.Generator())


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("norm", ["layernorm", "erf", "tanh"])
def test_its_blocks_are_those_of_our_network(norm):
    """The same weights give the same states; timm's LayerNorm has an epsilon of 1e-6, ours has none."""
    arguments = {"depth": 2, "norm": norm, "alpha": 0.7, "generator": stream(0, "timm"), "dtype": torch.float64}
    theirs, ours = TimmTransformer(**arguments), RandomTransformer(width=768, num_heads=12, **arguments)
    ours.weights = []
    for block in theirs.blocks:
        matrices = (*block.attn.qkv.weight.chunk(3), block.attn.proj.weight, block.mlp.fc1.weight, block.mlp.fc2.weight)
        ours.weights.append(BlockWeights(*(W.unsqueeze(0) for W in matrices)))
        assert all(float(W.std()) == pytest.approx(0.02, rel=0.01) for W in matrices)
    x = equiangular_tokens(5, 768, 1.0, 0.2, batch=(1, 2), generator=stream(0, "x"), dtype=torch.float64)
    tolerance = 5e-6 if norm == "layernorm" else 1e-11
    for h, same in zip(theirs.states(x), ours.states(x), strict=True):
        torch.testing.assert_close(h, same, rtol=tolerance, atol=tolerance)
    assert len(theirs.states(x, start=1)) == 2
