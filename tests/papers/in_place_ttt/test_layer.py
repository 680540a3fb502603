"""The layer: its forms, what may look ahead, documents, streams, the start, and derivatives."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd.functional import jacobian
from torch.nn.functional import conv1d, normalize, silu

from derived.lab.rng import stream
from derived.papers.in_place_ttt import layer as pictures
from derived.papers.in_place_ttt.model import baselines, forms, theory
from derived.papers.in_place_ttt.model.forms import depthwise_target, in_place_ttt, increments, read_mask
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


@given(sizes)
def test_one_step_on_the_linear_loss(size):
    """`ipt-layer`: autograd's step on -<Z W^T, V> is the outer product, wherever W stands."""
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


@pytest.mark.parametrize(("ahead", "cross"), [(0, False), (0, True), (1, False), (1, True), (2, False), (2, True)])
@pytest.mark.parametrize(("n", "chunk"), [(1, 1), (7, 1), (11, 2), (13, 4), (12, 6)])
def test_what_an_output_depends_on(n, chunk, ahead, cross):
    """`ipt-causal`, `ipt-cross`: the Jacobian is non-zero exactly where ``reach`` says so."""
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


@pytest.mark.parametrize("chunk", [1, 2, 3, 4])
def test_a_pair_is_bound_unless_an_edge_or_the_query_is_too_near(chunk):
    """`ipt-cross`: one-hot keys and embeddings, so that the read is the write."""
    n = 12
    one = torch.eye(n, dtype=torch.float64)
    kernel = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64).expand(n, 3)
    for pair, query in combinations(range(n), 2):
        keys = one.clone()
        keys[query] = one[pair]
        out = in_place_ttt(keys, depthwise_target(one, kernel, chunk=chunk), 0 * one, 1.0, chunk)
        assert out[query, (pair + 1) % n] == (pair // chunk == (pair + 1) // chunk < query // chunk)


def test_the_start_is_no_stationary_point_unless_both_factors_vanish():
    """`ipt-start`: outputs, both gradients, a first step that sees no sign of the diagonal."""
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
    alone = [
        in_place_ttt(*(each[part] for each in (keys, values)), w_down, 0.3, chunk, impl="loop")
        for part in (slice(0, cut), slice(cut, n))
    ]
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
def test_machines_that_know_the_sums_before_them_give_the_whole(chunk, chunks, ranks, seed):
    """`ipt-stream`: each of some simulated machines holds whole chunks; one matrix a machine is exchanged."""
    held = chunk * chunks
    keys, values, w_down, room = layer(held * ranks, 3, 4, seed)
    parts = [slice(r * held, (r + 1) * held) for r in range(ranks)]
    sums = [increments(keys[part], values[part], held)[0] for part in parts]
    starts = [w_down + 0.3 * sum(sums[:r], torch.zeros_like(w_down)) for r in range(ranks)]
    read = [
        in_place_ttt(keys[part], values[part], start, 0.3, chunk) for part, start in zip(parts, starts, strict=True)
    ]
    assert (torch.cat(read) - in_place_ttt(keys, values, w_down, 0.3, chunk, impl="loop")).abs().max() <= room


# Derivatives ----------------------------------------------------------------------------------------------------------


def second(impl: str, twice=silu) -> torch.Tensor:
    """The derivative of a squared gradient by inputs whose keys are a curved function of them."""
    x, W, V = normal(7, 3).requires_grad_(), normal(4, 3, seed=1), normal(7, 2)
    out = in_place_ttt(twice(x @ W.mT), V, normal(2, 4), 0.5, 2, impl=impl)
    (first,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
    return torch.autograd.grad(first.square().sum(), x)[0]


def test_a_second_derivative_is_right_or_an_error():
    """Curved keys are where a backward that is not recorded would be silently wrong; central differences are right."""
    x, W, V = normal(7, 3), normal(4, 3, seed=1), normal(7, 2)

    def squared(x: torch.Tensor) -> torch.Tensor:
        x = x.clone().requires_grad_()
        out = in_place_ttt(silu(x @ W.mT), V, normal(2, 4), 0.5, 2, impl="loop")
        return torch.autograd.grad(out.square().sum(), x)[0].square().sum()

    steps = 1e-6 * torch.eye(21, dtype=torch.float64).view(21, 7, 3)
    differences = torch.stack([(squared(x + step) - squared(x - step)) / 2e-6 for step in steps]).view(7, 3)
    for impl in ("loop", "scan", "attention"):
        assert torch.allclose(second(impl), differences, rtol=1e-5, atol=1e-4 * differences.abs().max()), impl
    for keys in (silu, lambda z: z):
        with pytest.raises(RuntimeError, match=r'impl="lean" has no second derivative: .* impl="scan"'):
            second("lean", keys)


def test_taps_have_all_derivatives():
    source, kernel = normal(7, 2).requires_grad_(), normal(2, 5).requires_grad_()
    for chunk in (1, 3, 8):
        assert torch.autograd.gradgradcheck(
            lambda x, w, C=chunk: depthwise_target(x.sin(), w, chunk=C), (source, kernel)
        )


@pytest.mark.parametrize("impl", forms.FORMS)
def test_gradients_of_any_layout_are_those_of_the_loop(impl):
    """Expanded, transposed, of a batch of one, with rows of zeros: as of contiguous copies."""
    keys, values, start = normal(4, 9).mT, normal(1, 3).expand(9, 3), normal(4, 3).mT
    keys = torch.cat([keys[:5], 0 * keys[5:]])
    wanted, found = [], []
    for got, form, layout in ((wanted, "loop", torch.clone), (found, impl, lambda each: each)):
        leaves = [each.detach().requires_grad_() for each in (keys, values, start)]
        out = in_place_ttt(*(layout(each)[None] for each in leaves), 0.3, 2, impl=form)
        got += torch.autograd.grad(out.expand(2, 1, 9, 3).sin().sum(), leaves)
    assert all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(wanted, found, strict=True))


# Memory off -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("impl", forms.FORMS)
def test_a_memory_that_is_off_writes_and_is_not_read(impl):
    keys, values, start, room = layer(11, 3, 4, 0)
    off, state = in_place_ttt(keys, values, start, 0.3, 2, impl=impl, return_state=True, memory_off=True)
    on, same = in_place_ttt(keys, values, start, 0.3, 2, impl=impl, return_state=True)
    assert (off - keys @ start.mT).abs().max() <= room
    assert torch.equal(state, same)
    assert (on - off).abs().max() > 1e3 * room


# Other forms ----------------------------------------------------------------------------------------------------------


def test_the_target_is_torchs_convolution_of_each_chunk():
    source, kernel = torch.randn(2, 12, 3), torch.randn(3, 5)
    chunks = source.view(6, 4, 3).mT
    wanted = conv1d(chunks, kernel.unsqueeze(1), padding=2, groups=3).mT.reshape(2, 12, 3)
    assert torch.allclose(depthwise_target(source, kernel, chunk=4), wanted, atol=1e-6)


def relatives(n: int = 11):
    g = stream(0, "relatives")
    draw = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)  # noqa: E731
    k = normalize(draw(2, n, 4), dim=-1)
    return draw(2, n, 4), k, draw(2, n, 5), 0.7 + 0.3 * torch.rand(2, n, 4, generator=g, dtype=torch.float64)


def close(a, b, tolerance=1e-11):
    return torch.allclose(a, b, rtol=0, atol=tolerance)


def test_closed_forms_are_the_recurrences():
    q, k, v, decay = relatives()
    assert close(
        baselines.gated_linear_attention(q, k, v, decay),
        baselines.gated_linear_attention_closed(q, k, v, decay.log()),
    )
    for wrong in (-decay, 2 * decay, decay.log()):
        with pytest.raises(ValueError, match=r"decay\[0, 0, 0\] = .*; give a number from 0 to 1"):
            baselines.gated_linear_attention(q, k, v, wrong)


@pytest.mark.parametrize(("n", "chunk"), [(11, 4), (8, 4), (5, 64), (6, 1), (131, 64)])
def test_the_delta_rule_by_chunks_is_the_recurrence(n, chunk):
    """With a rest, without one, in one chunk, by token: outputs and gradients."""
    q, k, v, decay = relatives(n)
    for beta in (decay[..., 0], 0 * decay[..., 0]):
        given = [each.clone().requires_grad_() for each in (q, k, v, beta)]
        wanted, found = baselines.delta_rule(*given), baselines.delta_rule_chunked(*given, chunk)
        assert close(found, wanted, 1e-10)
        back = [torch.autograd.grad(each.square().sum(), given) for each in (wanted, found)]
        assert all(close(one, other, 1e-9) for one, other in zip(*back, strict=True))


def test_lact_takes_the_gradient_step_of_its_network():
    q, k, v, decay = relatives(6)
    v = v[..., :4]
    weights = [torch.randn(s, generator=stream(1, *s), dtype=torch.float64) for s in ((7, 4), (7, 4), (4, 7))]
    W1, W3, W2 = (each.clone().requires_grad_() for each in weights)
    read = lambda x: (silu(x @ W1.mT) * (x @ W3.mT)) @ W2.mT  # noqa: E731
    loss = -(decay[0, :3, :1] * read(k[0, :3]) * v[0, :3]).sum()
    moved = [W - g for W, g in zip((W1, W3, W2), torch.autograd.grad(loss, (W1, W3, W2)), strict=True)]
    W1, W3, W2 = (
        M * W.norm(dim=1, keepdim=True) / M.norm(dim=1, keepdim=True) for M, W in zip(moved, weights, strict=True)
    )
    outputs = baselines.lact_swiglu(q[:1], k[:1], v[:1], tuple(weights), decay[:1, :, 0], 3)
    assert close(outputs[0, 3:], read(q[0, 3:]).detach())


def test_the_relatives_are_one_family():
    """The layer in chunks of one token is linear attention that reads a token late; a decay of one is none."""
    _, k, v, _ = relatives()
    ours = in_place_ttt(k, v, torch.zeros(5, 4, dtype=torch.float64), 1.0, 1)
    linear = baselines.linear_attention(k, k, v)
    assert close(ours, linear - (k * k).sum(dim=-1, keepdim=True) * v)
    assert close(linear, baselines.gated_linear_attention(k, k, v, torch.ones_like(k)))


def test_the_explorer_marks_the_leaks_that_the_jacobian_has():
    figure = pictures.explorer(8, (1, 4), 2)
    assert [frame.name for frame in figure.frames] == ["1|0", "1|1", "1|2", "4|0", "4|1", "4|2"]
    tables = [np.array(trace.z) for trace in figure.frames[-1].data]
    assert [int((each == 3).sum()) for each in tables] == [0, 1]
    assert tables[1][4, 5] == 3
    assert "1 leak<br>a token misses the last 1 to 4 tokens" in figure.frames[-1].layout.title.text


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: in_place_ttt(normal(3, 2), normal(3, 2).float(), normal(2, 2), 1.0, 2), "give both one dtype"),
        (lambda: in_place_ttt(normal(3, 2), normal(3, 2), normal(2, 2), 1.0, 0), "chunk = 0"),
        (lambda: in_place_ttt(normal(3, 2), normal(3, 2), normal(2, 2), 1.0, 2, impl="fast"), "impl"),
        (lambda: in_place_ttt(normal(3, 2), normal(3, 2), normal(2, 2), 1.0, 2, starts=(1,)), "rising from 0"),
        (lambda: depthwise_target(normal(3, 2), normal(2, 4), chunk=2), "odd number"),
        (lambda: read_mask(3, 0), "chunk = 0"),
        (lambda: theory.capacity(4, 4, 1), "give"),
        (lambda: theory.share_written(0.02, float("nan")), "give"),
        (lambda: theory.tapped(4, 2, ahead=-1), "give"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
