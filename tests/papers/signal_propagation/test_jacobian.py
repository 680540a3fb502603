"""Each estimator of the APJN against torch's own Jacobian."""

import math
import re
from functools import reduce

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.signal_propagation.model.jacobian import apjn_exact, apjn_hutchinson
from derived.papers.signal_propagation.model.kernels import ErfKernel, LayerNormKernel, TanhKernel
from derived.papers.signal_propagation.model.transformer import (
    RandomTransformer,
    Sigmas,
)

KERNELS = {"layernorm": LayerNormKernel(), "erf": ErfKernel(1.0), "tanh": TanhKernel(1.0)}
TINY = {"width": 6, "depth": 3, "num_heads": 2, "mlp_ratio": 2, "dtype": torch.float64}
STRONG = Sigmas(q=1.5, k=1.5, v=1.0, o=1.2, one=1.1, two=1.3)


def tiny(norm: str = "erf", num_networks: int = 2, **changes) -> RandomTransformer:
    arguments = TINY | {"sigmas": STRONG, "num_networks": num_networks, "generator": stream(1, "tiny")} | changes
    return RandomTransformer(norm=norm, **arguments)


def prompt(num_networks: int = 2, n: int = 3, d: int = 6, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(num_networks, n, d, generator=stream(2, "prompt", n), dtype=dtype)


def jacobians(model: RandomTransformer, x: torch.Tensor) -> list[torch.Tensor]:
    """dh^B_r / dh^b_r for every b, by torch.func.jacrev of the rest of the network: (R, n, d, n, d)."""
    states = model.states(x)

    def single(r: int, b: int) -> torch.Tensor:
        def rest(h: torch.Tensor) -> torch.Tensor:
            whole = torch.cat([states[b][:r], h[None], states[b][r + 1 :]])
            return reduce(model.block, range(b, model.depth), whole)[r]

        return torch.func.jacrev(rest)(states[b][r])

    return [torch.stack([single(r, b) for r in range(len(x))]) for b in range(model.depth + 1)]


def moments_of(full: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """J and K from a Jacobian (R, n, d, n, d) by the definitions of the dossier's table."""
    R, n, d = full.shape[:3]
    J = full.square().sum(dim=(1, 2, 3, 4)) / (n * d)
    K = torch.zeros(R, dtype=full.dtype)
    for a in range(n):
        for c in range(n):
            if a != c:
                K += (full[:, :, :, a] * full[:, :, :, c]).sum(dim=(1, 2, 3))
    return J, K / (n * (n - 1) * d)


@pytest.mark.parametrize("norm", KERNELS)
def test_exact_norm_against_jacrev(norm):
    model, x = tiny(norm), prompt()
    full = jacobians(model, x)
    J, K = apjn_exact(model, x)
    pooled = apjn_exact(model, x, output_gradient="pooled")
    for b, each in enumerate(full):
        exact = moments_of(each)
        torch.testing.assert_close(J[:, b], exact[0], rtol=1e-11, atol=0)
        torch.testing.assert_close(K[:, b], exact[1], rtol=1e-10, atol=1e-12)
        summed = each.sum(dim=1)  # sum over output tokens: the same gradient on all
        torch.testing.assert_close(pooled.J[:, b], summed.square().sum(dim=(1, 2, 3)) / 18, rtol=1e-11, atol=0)
    torch.testing.assert_close(J[:, -1], torch.ones(2, dtype=torch.float64), rtol=1e-14, atol=0)
    torch.testing.assert_close(K[:, -1], torch.zeros(2, dtype=torch.float64), rtol=0, atol=1e-14)
    torch.testing.assert_close(pooled.K[:, -1], torch.ones(2, dtype=torch.float64), rtol=1e-14, atol=0)


@pytest.mark.parametrize("gradient", ["independent", "pooled"])
def test_hutchinson_is_unbiased_and_a_wrong_value_is_rejected(gradient):
    """`sp-apjn`: the mean over probes is the exact J and K of each depth."""
    model, x = tiny("tanh"), prompt()
    exact = apjn_exact(model, x, output_gradient=gradient)
    probes = 1000
    draws = apjn_hutchinson(model, x, num_probes=probes, generator=stream(0, "hutch"), output_gradient=gradient)
    assert draws.J.shape == draws.K.shape == (2, probes, 4)
    for sample, value in zip(draws, exact, strict=True):
        error = sample.std(dim=1) / math.sqrt(probes)
        assert bool(((sample.mean(dim=1) - value).abs() <= 4.5 * error).all())
    error = draws.J.std(dim=1) / math.sqrt(probes)
    assert bool(((draws.J.mean(dim=1) - 1.2 * exact.J).abs() > 4.5 * error).all())


def test_prompts_ride_along():
    model, x = tiny(), prompt()
    several = apjn_exact(model, torch.stack([x, 2 * x, 3 * x], dim=1))
    assert several.J.shape == (2, 3, 4)
    torch.testing.assert_close(several.J[:, 1], apjn_exact(model, 2 * x).J, rtol=1e-12, atol=0)
    assert not x.requires_grad


G = torch.Generator()
BAD = [
    (lambda: apjn_hutchinson(tiny(), prompt(n=1), generator=G), "give (R, *batch, n, d), prompts of n >= 2 tokens"),
    (lambda: apjn_hutchinson(tiny(), prompt(), num_probes=0, generator=G), "num_probes = 0"),
    (lambda: apjn_hutchinson(tiny(), prompt(), generator=G, output_gradient="cls"), "output_gradient = 'cls'"),
    (lambda: apjn_exact(tiny(), prompt(), output_gradient="cls"), "output_gradient = 'cls'"),
    (lambda: apjn_hutchinson(tiny(), prompt().long(), generator=G), "x is a tensor of torch.int64"),
    (lambda: apjn_exact(tiny(), prompt().half()), "x has the dtype torch.float16, the weights have"),
    (lambda: apjn_hutchinson(tiny(), prompt()[0], generator=G), "x has shape (3, 6)"),
    (lambda: apjn_exact(tiny("layernorm"), 0 * prompt()), "a token whose features are all equal"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_the_blocks_of_any_network_are_measured_as_a_model_is():
    model, x = tiny(), prompt()
    blocks = [lambda h, b=b: model.block(h, b) for b in range(model.depth)]
    blocks[0] = lambda h: (model.block(h, 0), "attention")  # as Hugging Face's layers answer
    whole, parts = (apjn_hutchinson(each, x, num_probes=4, generator=stream(0, "blocks")) for each in (model, blocks))
    assert torch.equal(whole.J, parts.J)
    assert torch.equal(whole.K, parts.K)
