"""A second writing of the recurrences, one curve and one number at a time, that shares no code with the package; and
timm's network, or a stand-in of its shape where it is not installed."""

import math
import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

from derived.papers.signal_propagation.model import timm_vit

NEEDS_TIMM = pytest.mark.skipif(find_spec("timm") is None, reason="timm is not installed")


def moments(norm: str, alpha: float, q: float, p: float) -> tuple[float, float, float, float]:
    """q~, p~, q^, p^ of LayerNorm or of erf(alpha x)."""
    if norm == "layernorm":
        return 1.0, p / q, 1 / q, 1 / q
    x, y = 2 * alpha**2 * q, 2 * alpha**2 * p
    slope = 4 * alpha**2 / math.pi
    arcs = [2 / math.pi * math.asin(each / (1 + x)) for each in (x, y)]
    return *arcs, slope / math.sqrt((1 + x) ** 2 - x * x), slope / math.sqrt((1 + x) ** 2 - y * y)


def angle(rho: float) -> float:
    return (math.pi - math.acos(min(1.0, rho))) / (2 * math.pi)


def recurrence(norm: str, alpha: float, q: float, p: float, *, a: float, s: float, n: float, depth: int) -> dict:
    """q, p and J^{B,b} at b = 0 .. depth under uniform attention, and J^{b,0} at b = depth, n may be infinite."""
    course, steps = [(q, p)], []
    for _ in range(depth):
        tilde_q, tilde_p, hat_q, hat_p = moments(norm, alpha, q, p)
        mixed = a * (tilde_p + (tilde_q - tilde_p) / n)
        q, p = q + mixed, p + mixed
        tilde_q, tilde_p, half_q, half_p = moments(norm, alpha, q, p)
        rho = tilde_p / tilde_q
        joint = angle(rho)
        steps.append((a * hat_q, a * hat_p, 1 + s / 2 * half_q, 1 + s * joint * half_p))
        kappa = rho * joint + math.sqrt(max(0.0, 1 - rho * rho)) / (2 * math.pi)
        q, p = q + s / 2 * tilde_q, p + s * tilde_q * kappa
        course.append((q, p))
    J, K, back = 1.0, 0.0, [1.0]
    for own, shared, up_J, up_K in reversed(steps):
        J, K = J * up_J, K * up_K
        mean = J / n + (K if math.isinf(n) else K * (n - 1) / n)
        J, K = J + own * mean, K + shared * mean
        back.append(J)
    return {"q": [q for q, _ in course], "p": [p for _, p in course], "J": back[::-1]}


@pytest.fixture(scope="session")
def by_hand():
    """``recurrence``, for the tests that compare rows with it."""
    return recurrence


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


@pytest.fixture(params=["stand-in", pytest.param("timm", marks=NEEDS_TIMM)])
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
