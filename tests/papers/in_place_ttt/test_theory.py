"""The theorem and what it leaves out, as tests, by their labels: enumeration, simulation, closed form."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import normalize, silu

from derived.lab.rng import stream
from derived.papers.in_place_ttt.model import theory
from derived.papers.in_place_ttt.model.forms import gated_mlp_keys, in_place_ttt
from derived.papers.in_place_ttt.noise import piled_up, three_curves


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=stream(seed, "theory", *shape), dtype=torch.float64)


def induction(d=5, V=4, h=3, seed=0):
    """A text of tokens 0 .. V - 1 twice written, its embeddings, and keys whose signs are all equally likely."""
    embeddings, keys = normal(V, d, seed=seed), normal(6, h, seed=seed + 1)
    return embeddings, keys, [0, 1, 2, 3, 2, 1, 0]  # k* = 0, v* = 1 at t* = 0; six pairs; the last token asks


def expected_shift(embeddings, keys, written, query, fixed=0, mean=None):
    """The exact mean over all signs of the keys but one, by enumeration; ``mean`` is added to each of the others."""
    total, patterns = 0, list(itertools.product((1.0, -1.0), repeat=len(keys)))
    for signs in patterns:
        signs = torch.tensor(signs, dtype=torch.float64).unsqueeze(-1)
        signs[fixed] = 1
        shifted = keys * signs + (0 if mean is None else mean)
        total = total + theory.logit_shift(embeddings, embeddings[written], shifted, query, 0.7)
    return total / len(patterns)


def promised(embeddings, align):
    """What the theorem promises at eta = 0.7: the bound token gains at least, any other moves at most."""
    gram = embeddings @ embeddings.mT
    norm2, epsilon = gram.diagonal().min().item(), gram.fill_diagonal_(0).abs().max().item()
    return 0.7 * norm2 * align.item(), 0.7 * epsilon * align.item()


@pytest.mark.parametrize("seed", range(6))
def test_the_promise_of_the_theorem(seed):
    """`ipt-logits`: expectations by enumeration of signs, under which the second assumption is exact."""
    embeddings, keys, text = induction(seed=seed)
    query = keys[0] * 0.8 + 0.1 * keys[0].norm() * normalize(normal(3, seed=9), dim=0)
    (gain, reach), room = promised(embeddings, keys[0] @ query), 1e-12
    following = expected_shift(embeddings, keys, text[1:], query)
    assert following[1] >= gain - room
    assert following[[0, 2, 3]].abs().max() <= reach + room
    assert (following[1] - following[[0, 2, 3]]).min() >= gain - reach - room
    copied = expected_shift(embeddings, keys, text[:-1], query)
    assert copied[1].abs() <= reach + room
    assert copied[0] >= gain - room  # the token that asks is promoted


@pytest.mark.parametrize("seed", range(4))
def test_a_known_correlation_breaks_the_promise_by_what_it_adds(seed):
    """`ipt-logits`, `ipt-mean`: with a common direction mu in the other keys and in the query the second assumption is
    broken, and each logit moves by the predicted excess beyond what the theorem gives."""
    embeddings, keys, text = induction(seed=seed)
    mean, query = torch.tensor([0.6, -0.4, 0.9], dtype=torch.float64), keys[0]
    kept, broken = (expected_shift(embeddings, keys, text[1:], query + mean * on, mean=mean * on) for on in (0, 1))
    pair = 0.7 * embeddings @ embeddings[1] * (mean @ (query + mean) + keys[0] @ mean)  # the pair's own key moves, too
    others = 0.7 * embeddings @ embeddings[text[2:]].sum(dim=0) * (mean @ (query + mean))
    assert torch.allclose(broken - kept, pair + others, atol=1e-12)
    assert (broken[[0, 2, 3]].abs().max() > promised(embeddings, keys[0] @ query)[1]) or seed


@pytest.mark.parametrize("seed", range(6))
def test_reconstruction_binds_where_a_key_holds_the_token_before(seed):
    """`ipt-previous`: the pair's key stands one token later, and the value is that token's own embedding."""
    embeddings, keys, text = induction(seed=seed)
    copied = expected_shift(embeddings, keys, text[:-1], keys[1], fixed=1)
    gain, reach = promised(embeddings, keys[1] @ keys[1])
    assert copied[1] >= gain - 1e-12
    assert copied[[0, 2, 3]].abs().max() <= reach + 1e-12


def test_keys_with_a_mean_move_unrelated_logits_in_proportion_to_the_text():
    """`ipt-mean`: enumeration over signs of keys and of the query around a mean."""
    embeddings, keys, text = induction(seed=3)
    mean, query = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64), normal(3, seed=8)
    keys[0] = 0  # no pair
    for times in (1, 3):
        many, written = keys.repeat(times, 1)[: 4 * times], (text[1:] * times)[: 4 * times]
        found = sum(expected_shift(embeddings, many, written, mean + s * query, mean=mean) for s in (1, -1)) / 2
        assert torch.allclose(found, theory.mean_bias(embeddings, embeddings[written], mean, 0.7), atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_gate_leaves_a_bias_in_random_directions(d):
    """`ipt-keys`: pairs of inputs and a layer for each, and no bias where the inputs are orthogonal."""
    y = d**0.5 * normalize(normal(40_000, 2, d), dim=-1)
    gate, up = normal(40_000, 3, d, seed=1) / d**0.5, normal(40_000, 3, d, seed=2) / d**0.5
    keys = gated_mlp_keys(y, gate, up)
    products, size = keys.prod(dim=1).sum(dim=-1), keys.square().sum(dim=-1).mean()
    error = 5 * products.std() / len(products) ** 0.5 / size
    assert abs(products.mean() / size - theory.gated_key_bias(d)) < error < 0.3 * theory.gated_key_bias(d)


@pytest.mark.parametrize("rho", [0.0, 0.6, -0.5])
def test_keys_of_gated_layers(rho):
    """`ipt-keys`: two inputs at a known angle, means over a wide random layer within four standard errors."""
    d, h = 6, 200_000
    x = torch.zeros(2, d, dtype=torch.float64)
    x[:, 0], x[1, 0], x[1, 1] = d**0.5, rho * d**0.5, (d * (1 - rho**2)) ** 0.5
    gate, up = normal(h, d, seed=1) / d**0.5, normal(h, d, seed=2) / d**0.5
    each, activation = gated_mlp_keys(x, gate, up).prod(dim=0), silu(x @ gate.mT).prod(dim=0)
    error = (each - rho * activation).std() / h**0.5  # E u u' = cos(x, x') for unit variance
    assert abs(each.mean() - rho * activation.mean()) <= 4 * error


def noise(embeddings, written, query, draws, gaussian=True, seed=0):
    """Shifts of all logits by unrelated Gaussian (or fair-sign) keys of entry variance 1/h, one row a draw."""
    h = query.numel()
    keys = normal(draws, len(written), h, seed=seed)
    keys = (keys if gaussian else keys.sign()) / h**0.5
    return 0.7 * torch.einsum("wd,td,rth,h->rw", embeddings, embeddings[written], keys, query)


@pytest.mark.parametrize("gaussian", [True, False])
def test_the_noise_that_the_expectation_hides(gaussian):
    """`ipt-noise`: variance of simulated shifts, chi-square interval; the distribution of the keys does not matter."""
    embeddings, written, query, draws = normal(6, 4), [0, 1, 2, 0, 4, 3, 3, 3], normal(5, seed=3), 20_000
    found = noise(embeddings, written, query, draws, gaussian).var(dim=0)
    theirs = theory.shift_variance(embeddings, embeddings[written], query, 0.7)
    ratio = found / theirs
    assert (ratio - 1).abs().max() < 5 * math.sqrt(2 / draws)
    assert (found / (2 * theirs) - 1).abs().min() > 5 * math.sqrt(2 / draws)  # a wrong constant would show


@pytest.mark.parametrize(("V", "N", "h"), [(2, 6, 3), (5, 20, 4), (8, 8, 8)])
def test_few_tokens_written_often(V, N, h):
    """`ipt-noise`: simulated with the layer, orthonormal embeddings; five standard errors."""
    draws, query = 4_000, normalize(normal(h), dim=0)
    keys = torch.cat([normal(draws, N, h) / h**0.5, query.expand(draws, 2, h)], dim=1)  # the pair, and who asks
    values = torch.eye(V + 2).double()[torch.tensor([*range(V)] * (N // V) + [1, 0])].expand(draws, -1, -1)
    read = in_place_ttt(keys, values, torch.zeros(V + 2, h).double(), 1.0, N + 1)[:, -1, :V]
    expected = theory.wins(V, (V * h / N) ** 0.5)
    error = (expected * (1 - expected) / draws) ** 0.5
    assert abs((read.argmax(dim=-1) == 1).double().mean() - expected) < 5 * error


def test_a_small_vocabulary_holds_far_less_than_the_rule_for_a_large_one():
    """`ipt-noise`: half of the answers at the pairs that the function says, without random directions."""
    wide = theory.capacity_of_few(10**9, 16, 8)
    assert theory.wins(8, (8 * 16 / wide) ** 0.5) == pytest.approx(0.5, abs=1e-6)
    assert theory.capacity_of_few(64, 64, 8) < 0.3 * theory.capacity(64, 64, 8)
    assert theory.capacity_of_few(64, 64, 10**5) == pytest.approx(theory.capacity(64, 64, 10**5), rel=0.3)


@given(st.floats(1e-30, 1e30), st.floats(-1, 1))
def test_bf16_loses_a_small_write(weight, share):
    """`ipt-clip`: a write below 2^-9 of a weight leaves it as it is, and one above 2^-7 never does."""
    w = torch.tensor(weight, dtype=torch.float64).bfloat16()
    small, large = w.double() + share * 2**-9 * w.double() * (1 - 1e-9), w.double() * (1 + 2**-7)
    assert small.bfloat16() == w
    assert large.bfloat16() != w


@pytest.mark.parametrize("rms", [2e-9, 2e-7, 2e-5, 1e-3])
def test_the_share_of_weights_that_a_write_changes(rms):
    """`ipt-clip`: simulated rounding against the sum over binades; one weight in 128 is counted too low."""
    num = 4_000_000
    w = (0.02 * torch.randn(num, generator=stream(1, "w"))).bfloat16()
    changed = (
        ((w.double() + rms * torch.randn(num, generator=stream(1, "write")).double()).bfloat16() != w).sum().item()
    )
    share = theory.share_written(0.02, rms)
    assert abs(changed - num * share) <= 4 * math.sqrt(num * share) + 0.01 * num * share


@pytest.mark.parametrize("writes", [1, 32])
def test_clipped_writes_move_an_output_by_no_more_than_their_norms(writes):
    """`ipt-clip`: writes by the layer, each clipped; where all point one way the bound is reached."""
    W, z, tau = 0.02 * normal(60, 40), normal(40, seed=1), 1e-5
    same, values = z.expand(writes, 40), (W @ z).expand(writes, 60)
    state = in_place_ttt(same, values, W, 1.0, 1, tau=tau, return_state=True)[1]
    moved = ((state - W) @ z).norm()
    assert moved == pytest.approx((writes * tau * z.norm()).item(), rel=1e-9)
    free = in_place_ttt(same, values, W, 1.0, 1, return_state=True)[1]
    assert ((free - W) @ z).norm() > 1e3 * moved


def test_what_piles_up_is_what_theory_says():
    """`ipt-noise`, `ipt-mean`: the points of the figure against its lines."""
    noise_at, bias_at = piled_up(64, 16, 16, 0.0, 0.0, 0)[0], piled_up(64, 16, 16, 0.4, 0.25, 0)[1]
    assert noise_at == pytest.approx((64 / (16 * 16)) ** 0.5, rel=0.25)
    assert bias_at == pytest.approx(0.4 * 0.25 * 64, rel=0.15)
    assert "reaches the signal at 50 pairs" in three_curves(0.4, 0, width=16, tokens=32).get_label()
