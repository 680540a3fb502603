"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

symbol   name     meaning                                                        axes
n, C     n, chunk     tokens of a text, or the one that asks; tokens per chunk   scalar
Z, V     keys, values                                                            (n, h), (n, d)
W_0      start    the state with which each document begins                      (d, h)
eta      eta      inner step                                                     scalar
rho      rho      what is left of a write after one more chunk                   scalar
"""

import math

import torch
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from torch import Tensor

from derived.lab.exercises import Derive, Implement, ask, checker, ranges

from .model import mutations
from .model.forms import depthwise_target, in_place_ttt
from .model.theory import expected_logits, lag, logit_noise, mean_bias, tapped

SAME = 1e-5  # what float32 may lose in sums of a hundred products of size one

# By hand --------------------------------------------------------------------------------------------------------------

by_hand = (
    Derive(
        lambda n, C: n - lag(n + 1, C)[n].item(),
        ranges(n=(9, 60), C=(2, 9)),
        mistakes={
            "a chunk is written after it is read, its own tokens included": lambda n, C: n - 1,
            "that token stands in the chunk that asks": lambda n, C: n // C * C,
            "not every token is the last one of its chunk": lambda n, C: n - C,
            "chunks are counted from 0": lambda n, C: (n // C + 1) * C - 1,
        },
    ),
    Derive(
        lambda L, C: int((~tapped(L, C, behind=0, ahead=1)).diagonal(1).sum()),
        ranges(L=(9, 60), C=(2, 9)),
        low=0,
        mistakes={
            "the last edge may be the end of the text": lambda L, C: L // C,
            "an edge has a chunk on either side": lambda L, C: -(-L // C),
            "a part of a chunk has an edge before it, too": lambda L, C: L // C - 1,
            "each edge parts one pair of neighbours, not two": lambda L, C: 2 * ((L - 1) // C),
        },
    ),
)

# A memory that fades --------------------------------------------------------------------------------------------------


def _places(generator: torch.Generator) -> dict:
    rho, j, since = torch.rand(3, generator=generator, dtype=torch.float64).tolist()
    return {"rho": round(0.1 + 0.85 * rho, 2), "i": int(5 * j) + 1 + int(6 * since), "j": int(5 * j)}


def _impulse(rho: float, i: int, j: int) -> float:
    """The state before chunk i, run from a write of size one at chunk j."""
    state = 0.0
    for chunk in range(i):
        state = rho * state + (chunk == j)
    return state


def _clearest(m: int) -> float:
    """Where rho^m over the deviation of all writes, (1 - rho^2)^(-1/2), is largest, by search."""
    fallen = lambda rho: -m * math.log(rho) - 0.5 * math.log1p(-(rho**2))  # noqa: E731
    return minimize_scalar(fallen, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-10}).x


fading = (
    Derive(
        _impulse,
        _places,
        low=0,
        high=1,
        mistakes={
            "what was written last has not faded yet when it is read": lambda rho, i, j: rho ** (i - j),
            "it does not matter how many chunks came before the write": lambda rho, i, j: rho**i,
            "each further chunk takes a share of what is left": lambda rho, i, j: 1 - (i - 1 - j) * (1 - rho),
            "that is how much of the start is left": lambda rho, i, j: rho**j,
        },
    ),
    Derive(
        _clearest,
        ranges(m=(1, 15)),
        digits=3,
        low=0,
        high=1,
        mistakes={
            "that is its square": lambda m: m / (m + 1),
            "variances fade with the square of rho": lambda m: 2 * m / (2 * m + 1),
            "this rho makes the weight a constant and forgets the noise": lambda m: math.exp(-1 / m),
            "then the noise of all chunks stays": lambda m: 1.0,
        },
    ),
)

# Keys with a mean -----------------------------------------------------------------------------------------------------


def _drowned(c_align: float, mu2: float, f_v: float, f_w: float) -> float:
    one = torch.eye(2, dtype=torch.float64)  # embeddings of v* and w
    pair = expected_logits(one, 0, c_align)
    each = mean_bias(one, torch.tensor([[f_v, f_w]], dtype=torch.float64), torch.tensor([mu2], dtype=one.dtype).sqrt())
    return ((pair[0] - pair[1]) / (each[1] - each[0])).item()


drowned = Derive(
    _drowned,
    ranges(c_align=(0.5, 3.0), mu2=(0.01, 0.5), f_v=(0.01, 0.1), f_w=(0.2, 0.7)),
    digits=3,
    low=0,
    mistakes={
        "the right answer is written by other tokens, too": lambda c_align, mu2, f_v, f_w: c_align / (mu2 * f_w),
        "two keys have a product, so the mean counts twice": lambda c_align, mu2, f_v, f_w: (
            c_align / (mu2**0.5 * (f_w - f_v))
        ),
        "frequencies do not add up here": lambda c_align, mu2, f_v, f_w: c_align / (mu2 * (f_w + f_v)),
        "the pair does count": lambda c_align, mu2, f_v, f_w: 1 / (mu2 * (f_w - f_v)),
    },
)

# Two answers ----------------------------------------------------------------------------------------------------------


def _held(d: int, h: int, p: float) -> float:
    """N at which 1 is norm.isf(p) deviations of the difference of two logits, each with N times one token's noise."""
    return 1 / (2 * logit_noise(1, d, h) ** 2 * norm.isf(p) ** 2)


two_answers = Derive(
    _held,
    ranges(d=(8, 200), h=(8, 400), p=(0.002, 0.2)),
    digits=3,
    low=0,
    mistakes={
        "two logits have noise": lambda d, h, p: d * h / norm.isf(p) ** 2,
        "the noise has one side here": lambda d, h, p: d * h / (2 * norm.isf(p / 2) ** 2),
        "that is the rule for a largest of 1/p noises": lambda d, h, p: d * h / (2 * math.log(1 / p)),
        "deviations grow with the root of N": lambda d, h, p: (d * h / 2) ** 0.5 / norm.isf(p),
    },
)

# A kernel that may cross ----------------------------------------------------------------------------------------------


def _crossing(generator: torch.Generator) -> dict:
    normal = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    chunk = int(torch.randint(2, 5, (), generator=generator))
    return {"kernel": normal(2, 5), "chunk": chunk, "source": normal(12, 2), "keys": normal(12, 3)}


def _no_leak(safe, kernel, chunk, source, keys):
    """`ipt-cross`: with the taps across the edges no output moves when a later input does."""
    cut = torch.as_tensor(ask(safe, (2, 5), kernel=kernel))
    start = torch.zeros(2, 3, dtype=torch.float64)
    read = lambda s: in_place_ttt(keys, depthwise_target(s, cut, chunk=chunk, cross=True), start, 1.0, chunk)  # noqa: E731
    before = read(source)
    for at in range(1, 12):
        moved = (read(source.index_fill(0, torch.tensor([at]), 0.0)) - before)[:at].abs().amax(dim=1)
        if moved.max() > SAME:
            return f"the input at {at} moves the output at {int(moved.argmax())}"
    return None


def _nearest(safe, kernel):
    """`ipt-cross`: taps that reach one token ahead at most may stay as they are, and are no nearer elsewhere."""
    changed = torch.as_tensor(ask(safe, (2, 5), kernel=kernel)) - kernel
    moved = changed.abs().amax(dim=0)[:4]
    if moved.max() > SAME:
        return f"it changes tap {int(moved.argmax()) - 2}, which no leak asks for"
    return None


crossing_kernel = Implement(
    (_no_leak, _nearest),
    _crossing,
    mistakes={
        "taps read across the edge": lambda kernel: kernel,
        "taps end at the token": lambda kernel: kernel * (torch.arange(5) < 3),
        "the tap two behind is cut": lambda kernel: kernel * (torch.arange(5) > 0),
        "what is cut is given to its neighbour": lambda kernel: torch.stack(
            [*kernel.unbind(dim=1)[:3], kernel[:, 3] + kernel[:, 4], 0 * kernel[:, 4]], dim=1
        ),
        "one channel alone": lambda kernel: kernel * torch.tensor([[1.0] * 4 + [0.0], [1.0] * 5]),
    },
)

# Packed documents -----------------------------------------------------------------------------------------------------


def _row_of_texts(generator: torch.Generator) -> dict:
    normal = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    chunk, first, second = (int(x) for x in torch.randint(0, 3, (3,), generator=generator))
    chunk += 2
    starts = (0, chunk + 1 + first, 3 * chunk + 2 + first + second)
    n = starts[-1] + 2 * chunk + 1
    eta = 0.1 + round(torch.rand((), generator=generator).item(), 2)
    layer = {"keys": normal(n, 3), "values": normal(n, 2), "start": normal(2, 3), "eta": eta}
    return layer | {"chunk": chunk, "starts": starts}


def _outputs(packed, keys, values, start, eta, chunk, starts) -> Tensor:
    arguments = {"keys": keys, "values": values, "start": start, "eta": eta, "chunk": chunk, "starts": starts}
    return torch.as_tensor(ask(packed, (len(keys), 2), **arguments))


def _one_text(packed, keys, values, start, eta, chunk):
    """`ipt-attention`: of one document, every earlier chunk is read and nothing else."""
    at = torch.arange(len(keys)) // chunk
    wanted = keys @ start.mT + eta * (keys @ keys.mT * (at < at.unsqueeze(1))) @ values
    off = (_outputs(packed, keys, values, start, eta, chunk, (0,)) - wanted).abs().amax(dim=1)
    if off.max() > SAME:
        return f"with a single document the output at {int((off > SAME).double().argmax())} is off by {off.max():.2g}"
    return None


def _begins_anew(packed, keys, values, start, eta, chunk, starts):
    """`ipt-documents`: the first chunk of a document reads the start."""
    found = _outputs(packed, keys, values, start, eta, chunk, starts)
    for begin in starts:
        if (found[begin : begin + chunk] - keys[begin : begin + chunk] @ start.mT).abs().max() > SAME:
            return f"the first chunk of the document at {begin} does not read the start"
    return None


def _no_mixture(packed, keys, values, start, eta, chunk, starts):
    """`ipt-documents`: another first document changes nothing in the later ones."""
    before = _outputs(packed, keys, values, start, eta, chunk, starts)
    first = torch.arange(len(keys)).unsqueeze(1) < starts[1]
    after = _outputs(packed, torch.where(first, 1.0, keys), torch.where(first, 1.0, values), start, eta, chunk, starts)
    moved = (after - before)[starts[1] :].abs().amax(dim=1)
    return f"the first document moves the output at {int(moved.argmax()) + starts[1]}" if moved.max() > SAME else None


def _each_alone(packed, keys, values, start, eta, chunk, starts):
    """`ipt-documents`: each document is read as it would be alone."""
    together = _outputs(packed, keys, values, start, eta, chunk, starts)
    for begin, end in zip(starts, [*starts[1:], len(keys)], strict=True):
        alone = _outputs(packed, keys[begin:end], values[begin:end], start, eta, chunk, (0,))
        if (together[begin:end] - alone).abs().max() > SAME:
            return f"the document at {begin} is not read as it would be alone"
    return None


def _mutated(forward: mutations.Forward):
    """One of the chapter's mutations with keys and values of its own: both are parts of one source."""

    def packed(keys, values, start, eta, chunk, starts):
        (h, d), n = (keys.shape[1], values.shape[1]), keys.shape[1] + values.shape[1]
        centre = torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0], dtype=keys.dtype).expand(n, 5)
        select, down = torch.eye(n, dtype=keys.dtype), torch.cat([start.new_zeros(h, h), start])
        values_alone = torch.diag(torch.tensor([0.0] * h + [1.0] * d, dtype=keys.dtype))
        layer = mutations.Layer(select[:h], centre, values_alone, down, eta, chunk, tuple(starts))
        return forward(layer, torch.cat([keys, values], dim=1))[:, h:]

    return packed


def _attention(reads, scale=lambda chunk: 1.0):
    """The attention form with a wrong rule of who reads whom, of positions in their documents and of documents."""

    def packed(keys, values, start, eta, chunk, starts):
        at = torch.arange(len(keys))
        document = torch.searchsorted(torch.tensor(starts), at, right=True) - 1
        place = at - torch.tensor(starts)[document]
        mask = reads(place.unsqueeze(1), place, chunk) & (document == document.unsqueeze(1))
        return keys @ start.mT + scale(chunk) * eta * (keys @ keys.mT * mask) @ values

    return packed


packed_documents = Implement(
    (_one_text, _begins_anew, _no_mixture, _each_alone),
    _row_of_texts,
    mistakes={
        "update first, then apply": _mutated(mutations.update_first),
        "no reset between documents": _mutated(mutations.no_reset),
        "reset on the old grid": _mutated(mutations.one_grid),
        "the inner step is a half": lambda keys, values, start, eta, chunk, starts: in_place_ttt(
            keys, values, start, 0.5, chunk, starts=[*starts]
        ),
        "each write clipped": _mutated(mutations.clipped),
        "every earlier token is read": _attention(lambda n, t, chunk: t < n),
        "a window of one chunk": _attention(lambda n, t, chunk: t // chunk == n // chunk - 1),
        "a mean over the chunk": _attention(lambda n, t, chunk: t // chunk < n // chunk, lambda chunk: 1 / chunk),
        "the gradient is added": _attention(lambda n, t, chunk: t // chunk < n // chunk, lambda chunk: -1.0),
    },
)

EXERCISES = {
    "ipt-ex-hand": by_hand,
    "ipt-ex-decay": fading,
    "ipt-ex-mean": drowned,
    "ipt-ex-two": two_answers,
    "ipt-ex-taps": crossing_kernel,
    "ipt-ex-packed": packed_documents,
}
check = checker(EXERCISES)
