"""The theorems of the page as tests, by their labels: closed form, slow twin, enumeration or simulation."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch.autograd.functional import jacobian

from derived.lab.rng import stream
from derived.papers.in_place_ttt.model import mutations, theory
from derived.papers.in_place_ttt.model.forms import depthwise_target, gated_mlp_keys, in_place_ttt, increments
from derived.papers.in_place_ttt.model.parallel import context_parallel_scan
from derived.papers.in_place_ttt.model.stream import InPlaceTTTState

EPS = torch.finfo(torch.float64).eps


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=stream(seed, "theory", *shape), dtype=torch.float64)


sizes = st.tuples(st.integers(1, 23), st.integers(1, 9), st.integers(1, 4), st.integers(1, 5), st.integers(0, 99))


def layer(n, d, h, seed):
    """Keys, values, W_0, and how far sums of 4 n numbers of their size may be apart after rounding."""
    keys, values, w_down = normal(n, h, seed=seed), normal(n, d, seed=seed + 1000), normal(d, h, seed=seed + 2000)
    scale = keys.abs().max() * (w_down.abs().sum() + n * values.abs().max() * keys.abs().max() * h)
    return keys, values, w_down, 8 * (n + h) * EPS * float(scale)


# The memory -----------------------------------------------------------------------------------------------------------


@given(sizes)
def test_one_step_on_the_linear_loss(size):
    """`ipt-update`: autograd's step on -<Z W^T, V> is the outer product, wherever W stands."""
    n, _, d, h, seed = size
    keys, values, w_down, room = layer(n, d, h, seed)
    for at in (w_down, 3 * w_down + 1):
        W = at.clone().requires_grad_()
        loss = -((keys @ W.mT) * values).sum()
        (gradient,) = torch.autograd.grad(loss, W)
        assert (-gradient - increments(keys, values, n)[0]).abs().max() <= room
        squared = 0.5 * (keys @ W.mT - values).square().sum()
        (other,) = torch.autograd.grad(squared, W)
        assert n * h * d == 1 or (other - gradient).abs().max() > room  # that of the squared loss contains W


@given(sizes)
def test_the_writes_are_a_prefix_sum(size):
    """`ipt-prefix`, `ipt-attention`: the loop against double sums in numpy, and all forms with each other."""
    n, chunk, d, h, seed = size
    keys, values, w_down, room = layer(n, d, h, seed)
    Z, V, W = (each.numpy() for each in (keys, values, w_down))
    slow = np.stack(
        [W @ Z[i] + 0.3 * sum(((Z[t] @ Z[i]) * V[t] for t in range(i // chunk * chunk)), np.zeros(d)) for i in range(n)]
    )
    for impl in ("loop", "scan", "attention", "lean"):
        assert np.abs(in_place_ttt(keys, values, w_down, 0.3, chunk, impl=impl).numpy() - slow).max() <= room, impl


def test_a_squared_loss_is_no_prefix_sum_of_gradients_but_one_of_affine_maps():
    """`ipt-squared`, `ipt-squared-sum`."""
    keys, values, W0, room = layer(24, 3, 4, 1)
    eta, chunk = 0.02, 6
    W, naive, pairs = W0, W0, []
    for i in range(0, 24, chunk):
        Z, V = keys[i : i + chunk], values[i : i + chunk]
        naive = naive - eta * (Z @ W0.mT - V).mT @ Z  # gradients at the start
        W = W - eta * (Z @ W.mT - V).mT @ Z
        pairs.append((torch.eye(4, dtype=torch.float64) - eta * Z.mT @ Z, eta * V.mT @ Z))
    left, right = (compose(pairs[2 * i], pairs[2 * i + 1]) for i in range(2))  # a tree, as a scan would have it
    M, b = compose(left, right)
    assert (W0 @ M + b - W).abs().max() <= room
    assert (naive - W).norm() > 0.05 * (W - W0).norm()


def compose(first, second):
    """W -> W M + b twice."""
    return first[0] @ second[0], first[1] @ second[0] + second[1]


@given(st.sampled_from([(1, 2), (2, 3), (4, 6), (3, 8), (12, 24)]), st.integers(0, 99))
def test_the_state_does_not_depend_on_the_chunk(chunks, seed):
    """`ipt-chunks`: for given keys and values, after 24 tokens."""
    keys, values, w_down, room = layer(24, 3, 4, seed)
    states = [in_place_ttt(keys, values, w_down, 0.7, C, return_state=True)[1] for C in chunks]
    assert (states[0] - states[1]).abs().max() <= room


@given(st.integers(1, 30), st.integers(1, 9))
def test_a_token_misses_the_last_r_plus_one(n, chunk):
    """`ipt-chunks`: the lag, from an impulse written at every token."""
    keys, values = torch.ones(n, 1, dtype=torch.float64), torch.eye(n, dtype=torch.float64)
    read = in_place_ttt(keys, values, torch.zeros(n, 1, dtype=torch.float64), 1.0, chunk) != 0
    assert torch.equal(theory.lag(n, chunk), torch.arange(1, n + 1) - read.sum(dim=-1))


@pytest.mark.parametrize(("ahead", "cross"), [(0, False), (0, True), (1, False), (1, True), (2, False), (2, True)])
@pytest.mark.parametrize(("n", "chunk"), [(1, 1), (7, 1), (11, 2), (13, 4), (12, 6)])
def test_what_an_output_depends_on(n, chunk, ahead, cross):
    """`ipt-causal`, `ipt-cross`, `ipt-one`: the Jacobian is non-zero exactly where ``reach`` says so."""
    keys, w_down = normal(n, 3), normal(2, 3)
    kernel = torch.cat([normal(2, 3), normal(2, 2, seed=1)], dim=-1)
    kernel[:, 3 + ahead :] = 0
    forward = lambda x: in_place_ttt(keys, depthwise_target(x, kernel, chunk=chunk, cross=cross), w_down, 1.0, chunk)  # noqa: E731
    found = jacobian(forward, normal(n, 2)).abs().amax(dim=(1, 3)) > 0
    assert torch.equal(found, theory.reach(n, chunk, 2, ahead, cross))
    late = found.triu(1).nonzero().tolist()
    leaking = [[i, i + 1] for i in range(chunk, n - 1, chunk)] if cross and ahead == 2 else []
    if chunk > 1:  # the first token of each chunk sees its label; with C = 1 every token but the first is one
        assert late == leaking
    assert len(late) == theory.leaks(n, chunk, 2, ahead, cross)


def test_chunks_of_one_leave_no_neighbour_in_a_target():
    """`ipt-one`."""
    x, kernel, P = normal(9, 3), normal(3, 5), normal(3, 3, seed=4)
    assert (depthwise_target(x, kernel, P, chunk=1) - (kernel[:, 2] * x) @ P).abs().max() <= 64 * EPS


@given(sizes)
def test_the_gradient_of_the_scan_is_a_suffix_sum(size):
    """`ipt-adjoint`: autograd through the loop."""
    n, chunk, d, h, seed = size
    keys, values, w_down, room = layer(n, d, h, seed)
    G, eta = normal(n, d, seed=seed + 3000), 0.3
    leaves = [each.clone().requires_grad_() for each in (keys, values, w_down)]
    found = torch.autograd.grad((in_place_ttt(*leaves, eta, chunk, impl="loop") * G).sum(), leaves, allow_unused=True)
    W, want_keys, want_values = w_down.clone(), torch.zeros_like(keys), torch.zeros_like(values)
    for start in range(0, n, chunk):
        here, after = slice(start, start + chunk), slice(start + chunk, n)
        A = G[after].mT @ keys[after]
        want_keys[here], want_values[here] = G[here] @ W + eta * values[here] @ A, eta * keys[here] @ A.mT
        W = W + eta * values[here].mT @ keys[here]
    room *= 1 + float(G.abs().sum())
    for one, want in zip(found, (want_keys, want_values, G.mT @ keys), strict=True):
        assert (want if one is None else one - want).abs().max() <= room


def test_the_start_is_no_stationary_point_unless_both_factors_vanish():
    """`ipt-start`, `ipt-moves`: outputs, both gradients, a first step that sees no sign of the diagonal."""
    n, d, h, chunk = 16, 4, 5, 4
    keys, w_down, x, G = normal(n, h), normal(d, h), normal(n, d), normal(n, d, seed=7)
    signs = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    diagonal = 0.02 * normal(d, seed=3).abs()

    def step(diagonal):
        kernel, P = torch.zeros(d, 5, dtype=torch.float64, requires_grad=True), torch.diag(diagonal).requires_grad_()
        out = in_place_ttt(keys, depthwise_target(x, kernel, P, chunk=chunk), w_down, 0.3, chunk)
        assert (out - keys @ w_down.mT).abs().max() <= 32 * h * EPS
        by_kernel, by_P = torch.autograd.grad((out * G).sum(), (kernel, P))
        assert not by_P.any()
        return by_kernel, depthwise_target(x, -by_kernel, P, chunk=chunk).detach()

    by_kernel, moved = step(diagonal)
    flipped, same = step(signs * diagonal)
    assert by_kernel.abs().amin(dim=-1).min() > 0
    assert torch.equal(flipped, signs.unsqueeze(-1) * by_kernel)
    assert torch.equal(same, moved)
    assert not step(0 * diagonal)[0].any()


@given(sizes, st.data())
def test_packed_documents_are_read_as_if_alone(size, data):
    """`ipt-documents`: any cut, and a cut inside a chunk without a new grid does mix."""
    n, chunk, d, h, seed = size
    keys, values, w_down, room = layer(n, d, h, seed)
    cut = data.draw(st.integers(1, n)) if n > 1 else n
    starts = (0, cut) if cut < n else (0,)
    alone = [in_place_ttt(*(each[part] for each in (keys, values)), w_down, 0.3, chunk, impl="loop")
             for part in (slice(0, cut), slice(cut, n))]  # fmt: skip
    together = in_place_ttt(keys, values, w_down, 0.3, chunk, starts=starts)
    assert (together - torch.cat(alone)).abs().max() <= room
    source, kernel = normal(n, d, seed=seed + 1), normal(d, 5, seed=seed)
    targets = [depthwise_target(source[part], kernel, chunk=chunk) for part in (slice(0, cut), slice(cut, n))]
    assert (depthwise_target(source, kernel, chunk=chunk, starts=starts) - torch.cat(targets)).abs().max() <= room


@given(sizes, st.lists(st.integers(1, 6), max_size=8))
def test_any_cut_of_a_stream_gives_the_whole(size, pieces):
    """`ipt-stream`."""
    n, chunk, d, h, seed = size
    keys, _, w_down, room = layer(n, d, h, seed)
    source, kernel, P = normal(n, d, seed=seed + 1), normal(d, 5, seed=seed), normal(d, d, seed=seed + 2)
    state, outputs, at = InPlaceTTTState.begin(w_down, chunk=chunk, lr=0.3), [], 0
    for length in [*pieces, n]:
        part = slice(at, min(at + length, n))
        outputs.append(state.step(keys[part], source[part], kernel, P))
        at = part.stop
    whole = in_place_ttt(keys, depthwise_target(source, kernel, P, chunk=chunk), w_down, 0.3, chunk, impl="loop")
    assert (torch.cat(outputs) - whole).abs().max() <= 1e3 * d * room


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.integers(0, 99))
def test_ranks_that_know_the_sums_before_them_give_the_whole(chunk, chunks, ranks, seed):
    """`ipt-parallel`: simulated ranks; one matrix a rank is exchanged."""
    held = chunk * chunks
    keys, values, w_down, room = layer(held * ranks, 3, 4, seed)
    deltas = [increments(*(each[r * held : (r + 1) * held] for each in (keys, values)), chunk) for r in range(ranks)]
    totals, outputs = [each.sum(dim=0) for each in deltas], []
    for r in range(ranks):
        states = w_down + 0.3 * context_parallel_scan(deltas[r], totals[:r])
        Z = keys[r * held : (r + 1) * held].unflatten(0, (-1, chunk))
        outputs.append((Z @ states[:-1].mT).flatten(0, 1))
    assert (torch.cat(outputs) - in_place_ttt(keys, values, w_down, 0.3, chunk, impl="loop")).abs().max() <= room


# The theorem ----------------------------------------------------------------------------------------------------------


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


def bounds(embeddings, align):
    gram = embeddings @ embeddings.mT
    return theory.promise(gram.diagonal().min().item(), gram.fill_diagonal_(0).abs().max().item(), align.item(), 0.7)


@pytest.mark.parametrize("seed", range(6))
def test_the_promise_of_the_theorem(seed):
    """`ipt-logits`, `ipt-margin`: expectations by enumeration of signs, under which assumption 2 is exact."""
    embeddings, keys, text = induction(seed=seed)
    query = keys[0] * 0.8 + 0.1 * keys[0].norm() * torch.nn.functional.normalize(normal(3, seed=9), dim=0)
    align = keys[0] @ query
    promised, room = bounds(embeddings, align), 1e-12
    following = expected_shift(embeddings, keys, text[1:], query)
    assert torch.allclose(following, theory.expected_logits(embeddings, 1, align.item(), 0.7), atol=room)
    assert following[1] >= promised.gain - room
    assert following[[0, 2, 3]].abs().max() <= promised.reach + room
    assert (following[1] - following[[0, 2, 3]]).min() >= promised.margin - room
    copied = expected_shift(embeddings, keys, text[:-1], query)
    assert copied[1].abs() <= promised.reach + room
    assert copied[0] >= promised.gain - room  # the token that asks is promoted
    assert not torch.allclose(copied, following)


@pytest.mark.parametrize("seed", range(6))
def test_reconstruction_binds_where_a_key_holds_the_token_before(seed):
    """`ipt-previous`: the pair's key stands one token later, and the value is that token's own embedding."""
    embeddings, keys, text = induction(seed=seed)
    query = keys[1]
    copied = expected_shift(embeddings, keys, text[:-1], query, fixed=1)
    promised = bounds(embeddings, keys[1] @ query)
    assert copied[1] >= promised.gain - 1e-12
    assert copied[[0, 2, 3]].abs().max() <= promised.reach + 1e-12


@pytest.mark.parametrize("chunk", [1, 2, 3, 4])
def test_a_pair_is_bound_unless_an_edge_or_the_query_is_too_near(chunk):
    """`ipt-bound-pair`: one-hot keys and embeddings, so that the read is the write."""
    n = 12
    one = torch.eye(n, dtype=torch.float64)
    kernel = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64).expand(n, 3)
    for pair, query in itertools.combinations(range(n), 2):
        keys = one.clone()
        keys[query] = one[pair]
        out = in_place_ttt(keys, depthwise_target(one, kernel, chunk=chunk), 0 * one, 1.0, chunk)
        assert out[query, (pair + 1) % n] == (theory.is_bound(pair, query, chunk) and pair + 1 < n)


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
    """`ipt-gated-bias`: pairs of inputs and a layer for each, and no bias where the inputs are orthogonal."""
    y = d**0.5 * torch.nn.functional.normalize(normal(40_000, 2, d), dim=-1)
    gate, up = normal(40_000, 3, d, seed=1) / d**0.5, normal(40_000, 3, d, seed=2) / d**0.5
    keys = gated_mlp_keys(y, gate, up)
    products, size = keys.prod(dim=1).sum(dim=-1), keys.square().sum(dim=-1).mean()
    error = 5 * products.std() / len(products) ** 0.5 / size
    assert abs(products.mean() / size - theory.gated_key_bias(d)) < error < 0.3 * theory.gated_key_bias(d)


@pytest.mark.parametrize("rho", [0.0, 0.6, -0.5])
def test_keys_of_gated_and_of_plain_layers(rho):
    """`ipt-keys`: two inputs at a known angle, means over wide random layers within four standard errors."""
    d, h = 6, 200_000
    x = torch.zeros(2, d, dtype=torch.float64)
    x[:, 0], x[1, 0], x[1, 1] = d**0.5, rho * d**0.5, (d * (1 - rho**2)) ** 0.5
    gate, up = normal(h, d, seed=1) / d**0.5, normal(h, d, seed=2) / d**0.5
    z = gated_mlp_keys(x, gate, up)
    each, activation = z[0] * z[1], torch.nn.functional.silu(x @ gate.mT)
    wanted = rho * (activation[0] * activation[1]).mean()  # E u u' = cos(x, x') for unit variance
    error = (each - rho * activation[0] * activation[1]).std() / h**0.5
    assert abs(each.mean() - wanted) <= 4 * error
    plain = torch.relu(x @ gate.mT)
    cosine = (plain[0] @ plain[1]) / (plain[0].norm() * plain[1].norm())
    assert abs(cosine - theory.relu_key_cosine(rho)) <= 4 * 3 / h**0.5
    assert rho or (abs(cosine) > 0.3 and abs((z[0] @ z[1]) / (z[0].norm() * z[1].norm())) < 0.02)


def noise(embeddings, written, query, draws, gaussian=True, seed=0):
    """Shifts of all logits by unrelated Gaussian (or fair-sign) keys of entry variance 1/h, one row a draw."""
    h = query.numel()
    keys = normal(draws, len(written), h, seed=seed)
    keys = (keys if gaussian else keys.sign()) / h**0.5
    return 0.7 * torch.einsum("wd,td,rth,h->rw", embeddings, embeddings[written], keys, query)


@pytest.mark.parametrize("gaussian", [True, False])
def test_the_noise_that_the_expectation_hides(gaussian):
    """`ipt-noise`: variance of simulated shifts, chi-square interval; the law of the keys does not matter."""
    embeddings, written, query, draws = normal(6, 4), [0, 1, 2, 0, 4, 3, 3, 3], normal(5, seed=3), 20_000
    found = noise(embeddings, written, query, draws, gaussian).var(dim=0)
    theirs = theory.shift_variance(embeddings, embeddings[written], query, 0.7)
    ratio = found / theirs
    assert (ratio - 1).abs().max() < 5 * math.sqrt(2 / draws)
    assert (found / (2 * theirs) - 1).abs().min() > 5 * math.sqrt(2 / draws)  # a wrong constant would show


def test_the_mean_noise_of_random_embeddings():
    """`ipt-noise`: lambda sqrt(N / (dh)) for unit embeddings in random directions and a query of length one."""
    d, h, N = 8, 16, 4000
    embeddings = torch.nn.functional.normalize(normal(N + 1, d), dim=-1)
    query = torch.nn.functional.normalize(normal(h), dim=0)
    found = theory.shift_variance(embeddings[:1], embeddings[1:], query)[0].sqrt().item()
    assert found == pytest.approx(theory.logit_noise(N, d, h), rel=4 / N**0.5)


def test_the_chance_of_a_wrong_top_logit():
    """`ipt-capacity`: exact for two tokens; for more the simulated share stays below the bound."""
    draws = 20_000
    for V, length, exact in ((2, 1.0, True), (7, 2.0, False)):
        embeddings, query = torch.nn.functional.normalize(normal(V, 5), dim=-1), length * normal(4, seed=2)
        written = [i % V for i in range(3 * V)]
        shift = theory.expected_logits(embeddings, 1, query.square().sum().item(), 0.7)
        total = shift + noise(embeddings, written, query, draws, seed=5)
        failures = int((total.argmax(dim=-1) != 1).sum())
        bound = theory.failure_bound(embeddings, embeddings[written], query, 1, shift, 0.7).item()
        interval = stats.binomtest(failures, draws).proportion_ci(0.999)
        assert 0.01 < bound < 1
        assert interval.low <= bound
        assert not exact or bound <= interval.high


@pytest.mark.parametrize(("V", "N", "h"), [(2, 6, 3), (5, 20, 4), (8, 8, 8)])
def test_few_tokens_written_often(V, N, h):
    """`ipt-few`: simulated with the layer, orthonormal embeddings; five standard errors."""
    draws, query = 4_000, torch.nn.functional.normalize(normal(h), dim=0)
    keys = torch.cat([normal(draws, N, h) / h**0.5, query.expand(draws, 2, h)], dim=1)  # the pair, and who asks
    values = torch.eye(V + 2).double()[torch.tensor([*range(V)] * (N // V) + [1, 0])].expand(draws, -1, -1)
    read = in_place_ttt(keys, values, torch.zeros(V + 2, h).double(), 1.0, N + 1)[:, -1, :V]
    expected = theory.wins(V, (V * h / N) ** 0.5)
    error = (expected * (1 - expected) / draws) ** 0.5
    assert abs((read.argmax(dim=-1) == 1).double().mean() - expected) < 5 * error


def test_a_small_vocabulary_holds_far_less_than_the_rule_for_a_large_one():
    """`ipt-few`: half of the answers at the pairs that the function says, without random directions."""
    wide = theory.capacity_of_few(10**9, 16, 8)
    assert theory.wins(8, (8 * 16 / wide) ** 0.5) == pytest.approx(0.5, abs=1e-6)
    assert theory.capacity_of_few(64, 64, 8) < 0.3 * theory.capacity(64, 64, 8)
    assert theory.capacity_of_few(64, 64, 10**5) == pytest.approx(theory.capacity(64, 64, 10**5), rel=0.3)


def test_half_of_the_recall_is_lost_near_the_capacity():
    """`ipt-capacity`: dh / (2 ln V) is the right size: recall is high at a third of it and low at three times it."""
    d = h = 24
    V = 64
    embeddings = torch.nn.functional.normalize(normal(V, d), dim=-1)
    query = torch.nn.functional.normalize(normal(h), dim=0)
    recall = []
    for times in (1 / 3, 3):
        N = round(times * theory.capacity(d, h, V))
        written = torch.randint(V, (N,), generator=stream(0, "written")).tolist()
        shift = theory.expected_logits(embeddings, 1, 1.0, 0.7)
        total = shift + noise(embeddings, written, query, 2000, seed=N)
        recall.append((total.argmax(dim=-1) == 1).double().mean().item())
    assert recall[0] > 0.8
    assert recall[1] < 0.3


# Precision and cost ---------------------------------------------------------------------------------------------------


@given(st.floats(1e-30, 1e30), st.floats(-1, 1))
def test_bf16_loses_a_small_write(weight, share):
    """`ipt-lost`: a write below 2^-9 of a weight leaves it as it is, and one above 2^-7 never does."""
    w = torch.tensor(weight, dtype=torch.float64).bfloat16()
    small, large = w.double() + share * 2**-9 * w.double() * (1 - 1e-9), w.double() * (1 + 2**-7)
    assert small.bfloat16() == w
    assert large.bfloat16() != w


@pytest.mark.parametrize("rms", [2e-9, 2e-7, 2e-5, 1e-3])
def test_the_share_of_weights_that_a_write_changes(rms):
    """`ipt-lost`: simulated rounding against the sum over binades; one weight in 128 is counted too low."""
    num = 4_000_000
    w = (0.02 * torch.randn(num, generator=stream(1, "w"))).bfloat16()
    changed = (
        ((w.double() + rms * torch.randn(num, generator=stream(1, "write")).double()).bfloat16() != w).sum().item()
    )
    share = theory.share_written(0.02, rms)
    assert abs(changed - num * share) <= 4 * math.sqrt(num * share) + 0.01 * num * share


@pytest.mark.parametrize("writes", [1, 32])
def test_clipped_writes_move_an_output_by_no_more_than_their_norms(writes):
    """`ipt-clip`: also where all writes point one way, which reaches the bound."""
    W, z = 0.02 * normal(300, 200), normal(200, seed=1)
    out = torch.nn.functional.normalize(W @ z, dim=0)
    aligned = writes * 1e-5 * out.outer(z) / z.norm()
    moved = (aligned @ z).norm() / (W @ z).norm()
    assert moved == pytest.approx(theory.clipped_change(1e-5, writes, 0.02, 300), rel=0.2)  # |W z| is 0.02 sqrt(d) |z|
    one = writes * 1e-5 * torch.nn.functional.normalize(normal(300, 200, seed=5).flatten(), dim=0).view(300, 200)
    assert (one @ z).norm() <= writes * 1e-5 * z.norm()


def test_costs():
    d, h = 5, 7
    n = theory.crossover(d, h)
    assert n * n * (d + h) == pytest.approx(2 * n * d * h)
    assert theory.crossover(d, h, read_is_paid=False) == 2 * n
    assert theory.extra_flops(d, h, 5) == pytest.approx((2 * d * d + 10 * d + 2 * d * h) / (6 * d * h))


# What breaks it -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", mutations.MUTATIONS)
def test_each_mutation_loses_something_and_the_layer_nothing(name):
    lost = mutations.damage(mutations.MUTATIONS[name])
    if name == "nothing":
        assert lost == (0.0, 1.0, 0.0)
    else:
        assert lost.leak > 0.1 or lost.mixed > 0.1 or lost.bound < 1e-4


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.promise(0.0, 0.1, 1.0),
        lambda: theory.promise(1.0, -0.1, 1.0),
        lambda: theory.capacity(4, 4, 1),
        lambda: theory.relu_key_cosine(1.5),
        lambda: theory.share_written(0.02, math.nan),
        lambda: theory.crossover(0, 4),
        lambda: theory.extra_flops(4, 4, 0),
        lambda: theory.clipped_change(0.0, 1, 0.02, 4),
        lambda: theory.clipped_change(1e-5, 0, 0.02, 4),
        lambda: theory.logit_noise(0, 4, 4),
        lambda: theory.lag(0, 2),
        lambda: theory.tapped(4, 2, ahead=-1),
        lambda: theory.is_bound(0, 1, 0),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(ValueError, match="give"):
        call()
