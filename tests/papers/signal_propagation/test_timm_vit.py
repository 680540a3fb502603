"""SP-15 on timm's network: the real one where it happens to be installed, and everywhere a stand-in of its shape."""

import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

from derived.lab.rng import stream
from derived.papers.signal_propagation.model import timm_vit
from derived.papers.signal_propagation.model.timm_vit import TimmTransformer
from derived.papers.signal_propagation.model.transformer import BlockWeights, RandomTransformer, equiangular_tokens

INSTALLED = find_spec("timm") is not None
needs_timm = pytest.mark.skipif(not INSTALLED, reason="timm is not installed")


def test_where_timm_is_missing_the_error_says_what_to_use(monkeypatch):
    monkeypatch.setattr(timm_vit, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="timm is not installed; use RandomTransformer"):
        TimmTransformer(norm="erf", generator=torch.Generator())


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="norm = 'rms'; give one of"):
        TimmTransformer(norm="rms", generator=torch.Generator())
    with pytest.raises(ValueError, match="depth = 0; give an integer >= 1"):
        TimmTransformer(norm="erf", depth=0, generator=torch.Generator())


class Attention(nn.Module):
    """timm's attention: one matrix for q, k and v, twelve heads."""

    def __init__(self, width: int):
        super().__init__()
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 12, -1)).permute(2, 0, 3, 1, 4)
        mixed = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v
        return self.proj(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """timm's block: pre-norm attention, then a pre-norm MLP."""

    def __init__(self, width: int, act_layer):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn, self.mlp = Attention(width), nn.Sequential()
        for name, layer in (("fc1", nn.Linear(width, 4 * width)), ("act", act_layer())):
            self.mlp.add_module(name, layer)
        self.mlp.add_module("fc2", nn.Linear(4 * width, width))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


@pytest.fixture(params=["stand-in", pytest.param("timm", marks=needs_timm)])
def library(request, monkeypatch):
    """timm, or a module that builds blocks of the same shape and names."""
    if request.param == "stand-in":

        def create_model(name, depth, act_layer):
            model = nn.Module()
            model.blocks = nn.Sequential(*(Block(768, act_layer) for _ in range(depth)))
            return model

        module = ModuleType("timm")
        module.create_model = create_model
        monkeypatch.setitem(sys.modules, "timm", module)
        monkeypatch.setattr(timm_vit, "find_spec", lambda name: SimpleNamespace(name=name))


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
