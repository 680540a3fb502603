"""Topic writes: the update rule and its equal forms, documents, ranks, streams, the start."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import conv1d

from derived.lab.rng import stream
from derived.papers import in_place_ttt as face
from derived.papers.in_place_ttt.model import baselines, forms
from derived.papers.in_place_ttt.model.forms import (
    chunk_grid,
    depthwise_target,
    gated_mlp_keys,
    in_place_ttt,
    increments,
    read_mask,
)
from derived.papers.in_place_ttt.model.module import in_place_ttt_layer
from derived.papers.in_place_ttt.model.parallel import context_parallel_scan
from derived.papers.in_place_ttt.model.stream import InPlaceTTTState

SIZES = {"n": st.integers(1, 20), "chunk": st.integers(1, 9), "seed": st.integers(0, 10**6)}


def layer(n: int, seed: int, B: int = 2, d: int = 3, h: int = 4) -> tuple[torch.Tensor, ...]:
    """keys, values, w_down"""
    g = stream(seed, "layer")
    return tuple(torch.randn(*s, generator=g, dtype=torch.float64) for s in ((B, n, h), (B, n, d), (d, h)))


def by_tokens(keys, values, w_down, lr, chunk):
    """A twin that knows no chunk: token n sums over the tokens t with floor(t / C) < floor(n / C)."""
    n = keys.shape[1]
    return torch.stack(
        [
            (keys[:, i] @ w_down.mT)
            + lr * sum((keys[:, t] * keys[:, i]).sum(-1, True) * values[:, t] for t in range(i // chunk * chunk))
            for i in range(n)
        ],
        dim=1,
    )


def close(a, b, tolerance=1e-11):
    return torch.allclose(a, b, rtol=0, atol=tolerance)


@pytest.mark.parametrize("impl", forms.FORMS)
@given(**SIZES)
def test_every_form_is_lagged_linear_attention(impl, n, chunk, seed):
    """`ipt-prefix`, `ipt-attention`."""
    keys, values, w_down = layer(n, seed)
    outputs, state = in_place_ttt(keys, values, w_down, 0.3, chunk, impl=impl, return_state=True)
    assert close(outputs, by_tokens(keys, values, w_down, 0.3, chunk))
    full = n // chunk * chunk
    assert close(state.expand(2, 3, 4), w_down + 0.3 * values[:, :full].mT @ keys[:, :full])


@given(**SIZES)
def test_the_lean_backward_is_the_gradient(n, chunk, seed):
    """`ipt-adjoint`: also of the state, and where the weights are shared."""
    inputs = [each.requires_grad_() for each in layer(n, seed)]
    upstream = torch.linspace(-1, 1, 2 * n * 3, dtype=torch.float64).view(2, n, 3)

    def gradients(impl):
        outputs, state = in_place_ttt(*inputs, 0.3, chunk, impl=impl, return_state=True)
        total = (upstream * outputs).sum() + state.expand(2, 3, 4).sin().sum()
        return torch.autograd.grad(total, inputs, allow_unused=True)

    for lean, loop in zip(gradients("lean"), gradients("loop"), strict=True):
        assert close(lean, torch.zeros_like(lean) if loop is None else loop, 1e-10)


@pytest.mark.parametrize("impl", forms.FORMS)
def test_a_text_without_tokens_leaves_the_state(impl):
    keys, values, w_down = layer(3, 0)
    outputs, state = in_place_ttt(keys[:, :0], values[:, :0], w_down, 0.3, 2, impl=impl, return_state=True)
    assert outputs.shape == (2, 0, 3)
    assert torch.equal(state.expand(2, 3, 4), w_down.expand(2, 3, 4))


def test_gradcheck():
    inputs = [each.requires_grad_() for each in layer(7, 0)]
    assert torch.autograd.gradcheck(lambda *x: in_place_ttt(*x, 0.3, 3, return_state=True), inputs)


@pytest.mark.parametrize(("n", "chunk", "K"), [(1, 1, 5), (7, 3, 5), (6, 2, 5), (4, 8, 3)])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_gradcheck_of_the_taps(n, chunk, K, batch):
    source, kernel = (
        torch.randn(*batch, *shape, generator=stream(n, "taps"), dtype=torch.float64, requires_grad=True)
        for shape in ((n, 2), (2, K))
    )
    shared = kernel[:1].detach().requires_grad_() if batch else kernel  # one kernel for the whole batch
    for each in (kernel, shared):
        assert torch.autograd.gradcheck(lambda x, w: depthwise_target(x, w, chunk=chunk), (source, each))


@given(n=st.integers(2, 20), chunk=st.integers(1, 9), seed=st.integers(0, 10**6), data=st.data())
def test_documents_are_read_as_if_alone(n, chunk, seed, data):
    """`ipt-documents`."""
    cut = data.draw(st.integers(1, n - 1))
    keys, source, w_down = layer(n, seed)
    kernel = torch.randn(3, 5, generator=stream(seed, "kernel"), dtype=torch.float64)
    for impl in forms.FORMS:
        values = depthwise_target(source, kernel, chunk=chunk, starts=(0, cut))
        packed = in_place_ttt(keys, values, w_down, 0.3, chunk, impl=impl, starts=(0, cut))
        for span in (slice(0, cut), slice(cut, n)):
            values = depthwise_target(source[:, span], kernel, chunk=chunk)
            assert close(packed[:, span], in_place_ttt(keys[:, span], values, w_down, 0.3, chunk, impl="loop"))


@pytest.mark.parametrize("impl", forms.FORMS)
@pytest.mark.parametrize("starts", [(0, 4), (0, 5), (0, 3, 6)])
def test_the_state_of_packed_documents_is_that_of_the_last(impl, starts):
    keys, values, w_down = layer(10, 0)
    state = in_place_ttt(keys, values, w_down, 0.3, 2, impl=impl, starts=starts, return_state=True)[1]
    end = 10 - (10 - starts[-1]) % 2
    written = values[:, starts[-1] : end].mT @ keys[:, starts[-1] : end]
    assert written.abs().max() > 0.1
    assert close(state, w_down + 0.3 * written)


@given(**SIZES)
def test_who_reads_whom(n, chunk, seed):
    """The mask says where an output depends on a value."""
    keys, values, w_down = layer(n, seed, B=1)
    by = torch.autograd.functional.jacobian(lambda v: in_place_ttt(keys, v, w_down, 1.0, chunk)[0, :, 0], values)
    assert torch.equal(by[:, 0, :, 0] != 0, read_mask(n, chunk))
    assert sum(one.stop - one.start for one in chunk_grid(n, chunk)) == n


def test_the_target_is_torchs_convolution_of_each_chunk():
    source, kernel = torch.randn(2, 12, 3), torch.randn(3, 5)
    chunks = source.view(6, 4, 3).mT
    wanted = conv1d(chunks, kernel.unsqueeze(1), padding=2, groups=3).mT.reshape(2, 12, 3)
    assert torch.allclose(depthwise_target(source, kernel, chunk=4), wanted, atol=1e-6)


def test_a_rank_begins_with_the_totals_before_it():
    deltas = increments(*layer(12, 0)[:2], 3)
    whole = context_parallel_scan(deltas, [])
    second = context_parallel_scan(deltas[:, 2:], [deltas[:, :2].sum(dim=1)])
    assert close(whole[:, 2:], second)


RANK = """
import torch, torch.distributed as dist
from derived.papers.in_place_ttt import context_parallel_ttt, in_place_ttt
dist.init_process_group("gloo")
rank = dist.get_rank()
g = torch.Generator().manual_seed(0)
draw = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)
Z, V, W, G = (each.requires_grad_() for each in (draw(2, 22, 5), draw(2, 22, 3), draw(3, 5), draw(2, 22, 3)))
here = slice(0, 12) if rank == 0 else slice(12, 22)
out = context_parallel_ttt(Z[:, here], V[:, here], W, 0.3, 4)
(G[:, here].detach() * out).sum().backward()
dist.all_reduce(W.grad)
mine = [out.detach(), Z.grad[:, here], V.grad[:, here], W.grad]
for each in (Z, V, W): each.grad = None
whole = in_place_ttt(Z, V, W, 0.3, 4, impl="loop")
(G.detach() * whole).sum().backward()
wanted = [whole.detach()[:, here], Z.grad[:, here], V.grad[:, here], W.grad]
gap = max(float((a - b).abs().max()) for a, b in zip(mine, wanted))
assert gap < 1e-10, gap
try:
    context_parallel_ttt(Z[:, :10], V[:, :10], W, 0.3, 4)
except ValueError as error:
    assert "[10, 10]" in str(error)
else:
    raise AssertionError("a rank with half a chunk was taken")
print(f"rank {rank} agrees")
dist.destroy_process_group()
"""


def test_two_processes_give_what_one_does(tmp_path):
    """`ipt-parallel`: torchrun, gloo, outputs and gradients to 1e-10; both ranks refuse half a chunk."""
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    root = str(Path(forms.__file__).resolve().parents[4])
    environment = {"PYTHONPATH": root, "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(run, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    # the two share one stream: each sentence is one write, the ends of their lines are not
    assert sorted(re.findall(r"rank \d agrees", done.stdout)) == ["rank 0 agrees", "rank 1 agrees"]


@given(**SIZES, data=st.data())
def test_a_stream_may_be_cut_anywhere(n, chunk, seed, data):
    """`ipt-stream`."""
    keys, source, w_down = layer(n, seed)
    kernel, projection = (torch.randn(3, k, generator=stream(seed, k), dtype=torch.float64) for k in (5, 3))
    values = depthwise_target(source, kernel, projection, chunk=chunk)
    state, outputs, left = InPlaceTTTState.begin(w_down, chunk=chunk, lr=0.3, batch=(2,)), [], n
    while left:
        size = data.draw(st.integers(0, left)) or 1
        span = slice(n - left, n - left + size)
        outputs.append(state.copy().step(keys[:, span], source[:, span], kernel, projection))
        state.step(keys[:, span], source[:, span], kernel, projection)
        left -= size
    assert close(torch.cat(outputs, dim=1), by_tokens(keys, values, w_down, 0.3, chunk))


@given(**SIZES)
def test_the_state_does_not_know_the_chunks(n, chunk, seed):
    """`ipt-chunks`."""
    keys, values, w_down = layer(2 * chunk * (1 + n // 8), seed)
    states = [in_place_ttt(keys, values, w_down, 0.3, C, return_state=True)[1] for C in (chunk, 2 * chunk)]
    assert close(*states, 1e-10)


@given(**SIZES, B=st.integers(1, 3))
def test_the_layer_in_one_is_keys_values_and_memory_with_their_gradients(n, chunk, seed, B):
    """`ipt-adjoint`: against the loop by autograd, one parameter after the other."""
    g, d, h = stream(seed, "whole"), 3, 4
    shapes = ((B, n, d), (B, n, d), (h, d), (h, d), (d, 5), (d, d), (d, h))
    inputs = [torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_() for shape in shapes]
    x, source, w_gate, w_up, kernel, projection, w_down = inputs
    keys, values = gated_mlp_keys(x, w_gate, w_up), depthwise_target(source, kernel, projection, chunk=chunk)
    loop, layer = in_place_ttt(keys, values, w_down, 0.3, chunk, impl="loop"), in_place_ttt_layer(*inputs, 0.3, chunk)
    upstream = torch.randn(B, n, d, generator=g, dtype=torch.float64)
    expected, found = (
        torch.autograd.grad((each * upstream).sum(), inputs, allow_unused=True) for each in (loop, layer)
    )
    assert close(layer, loop)
    for each, want in zip(found, expected, strict=True):
        size = 1.0 if want is None else 1 + float(want.abs().max())
        assert close(each / size, 0 * each if want is None else want / size)


@pytest.mark.parametrize(("chunks", "kept"), [(1, 1), (4, 2), (9, 3), (10, 3), (16, 4)])
def test_the_layer_in_one_keeps_some_root_of_its_states(chunks, kept):
    """Of T states, the one before every ceil(sqrt(T))-th chunk; keys and values are not kept."""
    n, d, h, shapes = 2 * chunks, 3, 7, []
    inputs = [
        torch.ones(*shape, requires_grad=True)
        for shape in ((1, n, d), (1, n, d), (h, d), (h, d), (d, 5), (d, d), (d, h))
    ]
    note = lambda each: shapes.append(tuple(each.shape)) or each  # noqa: E731
    with torch.autograd.graph.saved_tensors_hooks(note, lambda each: each):
        in_place_ttt_layer(*inputs, 0.1, 2)
    assert shapes.count((1, d, h)) == kept
    assert shapes.count((1, n, h)) == 2  # the products with both weights
    assert len(shapes) == 6 + 2 + kept


# Relatives ------------------------------------------------------------------------------------------------------------


def relatives(n: int = 11):
    g = stream(0, "relatives")
    draw = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)  # noqa: E731
    k = torch.nn.functional.normalize(draw(2, n, 4), dim=-1)
    return draw(2, n, 4), k, draw(2, n, 5), 0.7 + 0.3 * torch.rand(2, n, 4, generator=g, dtype=torch.float64)


def test_closed_forms_are_the_recurrences():
    q, k, v, decay = relatives()
    assert close(
        baselines.gated_linear_attention(q, k, v, decay),
        baselines.gated_linear_attention_closed(q, k, v, decay.log()),
    )
    for wrong in (-decay, 2 * decay, decay.log()):
        with pytest.raises(ValueError, match=r"decay\[0, 0, 0\] = .*; give a number from 0 to 1"):
            baselines.gated_linear_attention(q, k, v, wrong)
    beta = decay[..., 0]
    assert close(baselines.delta_rule(q, k, v, beta), baselines.delta_rule_closed(q, k, v, beta))


@pytest.mark.parametrize("window", [1, 3, 20])
def test_a_sliding_window_is_torchs_masked_attention(window):
    q, k, v, _ = relatives()
    back = torch.arange(11).unsqueeze(-1) - torch.arange(11)
    masked = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=(back >= 0) & (back < window))
    assert close(baselines.sliding_window(q, k, v, window), masked)
    with pytest.raises(ValueError, match="window = 0"):
        baselines.sliding_window(q, k, v, 0)


def test_the_relatives_are_one_family():
    q, k, v, _ = relatives()
    ours = in_place_ttt(k, v, torch.zeros(5, 4, dtype=torch.float64), 1.0, 1)  # writes after it reads: one step late
    linear = baselines.linear_attention(k, k, v)
    diagonal = (k * k).sum(dim=-1, keepdim=True) * v
    assert close(ours, linear - diagonal)
    one = torch.ones_like(k)
    assert close(linear, baselines.gated_linear_attention(k, k, v, one))
    zero = torch.zeros(5, 4, dtype=torch.float64)
    assert close(
        baselines.ttt_linear(q, k, v, zero, 0.5, 1), baselines.delta_rule(q, k, v, torch.full((2, 11), 0.5).double())
    )


@pytest.mark.filterwarnings("ignore:Triton is not supported")
@pytest.mark.parametrize("kind", ["linear_attn", "gla", "delta_rule"])
def test_the_recurrences_are_those_of_flash_linear_attention(kind):
    """Its references divide queries by the root of their width; skipped where it is not installed."""
    theirs = pytest.importorskip(f"fla.ops.{kind}.naive", exc_type=ImportError)
    q, k, v, decay = (each.unsqueeze(1).float() for each in relatives(40))  # one head
    beta, scaled = decay[..., 0], 2 * q
    if kind == "delta_rule":
        ours, found = baselines.delta_rule(q, k, v, beta), theirs.delta_rule_recurrence(scaled, k, v, beta)[0]
    else:
        swapped = [each.transpose(1, 2) for each in (scaled, k, v, decay.log())]  # time before heads
        gated = kind == "gla"
        ours = baselines.gated_linear_attention(q, k, v, decay) if gated else baselines.linear_attention(q, k, v)
        one = theirs.naive_recurrent_gla if gated else theirs.naive_recurrent_linear_attn
        found = one(*swapped[: 4 if gated else 3])[0].transpose(1, 2)
    sizes = ((q @ k.mT).abs().tril() @ v.abs()).max()  # of the terms <k_s, q_t> v_s of a sum
    rounding = 8 * torch.finfo(torch.float32).eps * (40 * 4) ** 0.5 * sizes
    assert (ours - found).abs().max() < rounding
    assert (ours[..., 1:, :] - found[..., :-1, :]).abs().max() > 100 * rounding  # a token late


def test_lact_takes_the_gradient_step_of_its_network():
    q, k, v, decay = relatives(6)
    v = v[..., :4]
    weights = [torch.randn(s, generator=stream(1, *s), dtype=torch.float64) for s in ((7, 4), (7, 4), (4, 7))]
    W1, W3, W2 = (each.clone().requires_grad_() for each in weights)
    read = lambda x: (torch.nn.functional.silu(x @ W1.mT) * (x @ W3.mT)) @ W2.mT  # noqa: E731
    loss = -(decay[0, :3, :1] * read(k[0, :3]) * v[0, :3]).sum()
    moved = [W - g for W, g in zip((W1, W3, W2), torch.autograd.grad(loss, (W1, W3, W2)), strict=True)]
    W1, W3, W2 = (
        M * W.norm(dim=1, keepdim=True) / M.norm(dim=1, keepdim=True) for M, W in zip(moved, weights, strict=True)
    )
    outputs = baselines.lact_swiglu(q[:1], k[:1], v[:1], tuple(weights), decay[:1, :, 0], 3)
    assert close(outputs[0, 3:], read(q[0, 3:]).detach())


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"keys": torch.zeros(2, 5, 4)}, "values has n = 6, but keys has n = 5"),
        ({"w_down": torch.zeros(4, 3)}, r"w_down has h = 3, but keys has h = 4; .* \(\*B, d, h\)"),
        ({"values": torch.zeros(2, 6, 3, dtype=torch.bfloat16)}, "mixed dtypes, .*values torch.bfloat16"),
        ({"chunk": 0}, "chunk = 0; give an integer >= 1"),
        ({"impl": "fast"}, "give one of 'loop'"),
        ({"starts": (1, 3)}, "rising from 0"),
        ({"starts": (0, 6)}, "starts = .* for 6 tokens"),
        ({"starts": (0, 1.7)}, r"starts = \(0, 1.7\); give a sequence of integers"),
    ],
)
def test_a_wrong_layer_is_refused_with_what_would_be_right(change, words):
    inputs = {"keys": torch.zeros(2, 6, 4), "values": torch.zeros(2, 6, 3), "w_down": torch.zeros(3, 4)}
    with pytest.raises(ValueError, match=words):
        face.in_place_ttt(**(inputs | {"lr": 0.1, "chunk": 2} | change))


def test_a_wrong_target_or_state_is_refused():
    with pytest.raises(ValueError, match="4 taps; give an odd number"):
        depthwise_target(torch.zeros(5, 2), torch.zeros(2, 4), chunk=2)
    with pytest.raises(ValueError, match="kernel has d = 3, but source has d = 2"):
        face.depthwise_target(torch.zeros(5, 2), torch.zeros(3, 5), chunk=2)
    state = InPlaceTTTState.begin(torch.zeros(3, 4), chunk=2, lr=0.1)
    for keys in (torch.zeros(5, 6), torch.zeros(5, 4, dtype=torch.float64), torch.zeros(2, 5, 4)):
        with pytest.raises(ValueError, match="another model or batch"):
            state.step(keys, torch.zeros(*keys.shape[:-1], 3), torch.zeros(3, 5))
