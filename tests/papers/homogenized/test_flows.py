"""Deterministic limits, their order, single tokens, the clock and the regimes."""

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.homogenized.model import flows, heads

F64 = {"dtype": torch.float64}


def test_deterministic_heads_follow_the_drift():
    """Layers of size eta stay within O(eta) of the flow at grid times; the order is measured."""
    X = heads.uniform_tokens(4, 3, generator=stream(44, "X"))[0]
    V, A = torch.randn(2, 3, 3, generator=stream(44, "VA"), **F64)

    def field(Y):
        return heads.attention_field(Y, V, A, 1.0)

    exact = flows.sphere_flow(flows.modified_drift(field, 0.0, "none"), X, 1.0, steps=200)
    errors = [(flows.sphere_euler(field, X, 1.0, steps=k) - exact).norm().item() for k in (40, 80, 160)]
    assert flows.observed_order([1 / 40, 1 / 80, 1 / 160], errors) == pytest.approx(1, abs=0.1)
    steps = [
        (flows.sphere_flow(flows.modified_drift(field, 0.0, "none"), X, 1.0, steps=k) - exact).norm().item()
        for k in (5, 10, 20)
    ]
    assert flows.observed_order([1 / 5, 1 / 10, 1 / 20], steps) == pytest.approx(4, abs=0.4)


def test_corrector_that_restores_order_two():
    """Order 2 needs -eta <x, b_rho> b; so does a projected velocity without it."""
    X = heads.uniform_tokens(5, 4, generator=stream(45, "X"))[0]

    def field(Y):
        return flows.self_attention(Y, 1.0)

    def order(corrector, projected):
        errors = []
        for k in (20, 40, 80):
            chain = flows.sphere_euler(field, X, 1.0, steps=k, projected=projected)
            errors.append(
                (chain - flows.sphere_flow(flows.modified_drift(field, 1 / k, corrector), X, 1.0, steps=100))
                .norm()
                .item()
            )
        return flows.observed_order([1 / 20, 1 / 40, 1 / 80], errors)

    assert order("full", False) == pytest.approx(2, abs=0.1)
    assert order("first", False) == pytest.approx(1, abs=0.1)
    assert order("first", True) == pytest.approx(2, abs=0.1)
    assert order("full", True) == pytest.approx(1, abs=0.1)
