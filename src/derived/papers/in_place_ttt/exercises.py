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
from torch import Tensor

from derived.lab.exercises import ask, checker, close, holds, ranges

from .data import mqar
from .model.forms import in_place_ttt
from .model.module import memories, memory_off
from .model.theory import lag, tapped

SAME = 1e-5  # what float32 may lose in sums of a hundred products of size one

by_hand = (
    close(
        lambda n, C: n - lag(n + 1, C)[n].item(),
        ranges(n=(9, 60), C=(2, 9)),
        mistakes={
            "a chunk is written after it is read, its own tokens included": lambda n, C: n - 1,
            "that token stands in the chunk that asks": lambda n, C: n // C * C,
        },
    ),
    close(
        lambda L, C: int((~tapped(L, C, behind=0, ahead=1)).diagonal(1).sum()),
        ranges(L=(9, 60), C=(2, 9)),
        mistakes={
            "the last edge may be the end of the text": lambda L, C: L // C,
            "an edge has a chunk on either side": lambda L, C: -(-L // C),
        },
    ),
)


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


late = "what was written last has not faded yet when it is read"
fading = (
    close(_impulse, _places, mistakes={late: lambda rho, i, j: rho ** (i - j)}),
    close(
        _clearest,
        ranges(m=(1, 15)),
        digits=3,
        mistakes={
            "that is its square": lambda m: m / (m + 1),
            "this rho makes the weight a constant and forgets the noise": lambda m: math.exp(-1 / m),
        },
    ),
)


def _row_of_texts(generator: torch.Generator) -> dict:
    normal = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    chunk, first, second = (int(x) for x in torch.randint(0, 3, (3,), generator=generator))
    chunk += 2
    starts = (0, chunk + 1 + first, 3 * chunk + 2 + first + second)
    n = starts[-1] + 2 * chunk + 1
    layer = {"keys": normal(n, 3), "values": normal(n, 2), "start": normal(2, 3), "eta": 0.4}
    return layer | {"chunk": chunk, "starts": starts}


def _each_alone(packed, keys, values, start, eta, chunk, starts):
    """`ipt-documents`: each document is read as it would be alone, by chunks counted from its start."""
    given = {"keys": keys, "values": values, "start": start, "eta": eta, "chunk": chunk, "starts": starts}
    together = torch.as_tensor(ask(packed, (len(keys), 2), **given))
    for begin, end in zip(starts, [*starts[1:], len(keys)], strict=True):
        alone = in_place_ttt(keys[begin:end], values[begin:end], start, eta, chunk, impl="loop")
        off = (together[begin:end] - alone).abs().amax(dim=1)
        if off.max() > SAME:
            return f"in the document at {begin} the output at {begin + int((off > SAME).double().argmax())} is wrong"
    return None


def _attention(reads, reset: bool = True):
    """The attention form with a rule of who reads whom, of places in their documents."""

    def packed(keys, values, start, eta, chunk, starts) -> Tensor:
        at = torch.arange(len(keys))
        document = torch.searchsorted(torch.tensor(starts), at, right=True) - 1
        place = at - torch.tensor(starts)[document] if reset else at
        mask = reads(place.unsqueeze(1), place, chunk) & (document == document.unsqueeze(1))
        return keys @ start.mT + eta * (keys @ keys.mT * mask) @ values

    return packed


packed_documents = holds(
    (_each_alone,),
    _row_of_texts,
    mistakes={
        "a chunk is read before it is written": _attention(lambda n, t, chunk: t // chunk <= n // chunk),
        "chunks are counted from the start of their document": _attention(lambda n, t, C: t // C < n // C, reset=False),
    },
)


def _texts_of_recall(generator: torch.Generator) -> dict:
    ids, labels, _ = mqar(64, 64, pairs=8, queries=6, keys=16, generator=generator)
    return {"ids": ids, "labels": labels}


@torch.no_grad()
def _recalls_by_what_it_wrote(block, ids, labels):
    """`ipt-previous`: the token itself is written, and the answers are gone with the memory."""
    if any(memory.ttt_kernel[:, [0, 1, 3, 4]].any() for memory in memories(block)):
        return "it writes more than the token itself"
    right = lambda: (block(ids)[labels >= 0].argmax(-1) == labels[labels >= 0]).float().mean().item()  # noqa: E731
    with memory_off(block):
        off = right()
    if (share := right()) < 0.9 or off > 0.1:
        return f"{share:.2f} of its answers are right, {off:.2f} with the memory off"
    return None


previous_token = holds((_recalls_by_what_it_wrote,), _texts_of_recall)

EXERCISES = {"ipt-ex-hand": by_hand, "ipt-ex-decay": fading, "ipt-ex-packed": packed_documents}
EXERCISES |= {"ipt-ex-gate": previous_token}
check = checker(EXERCISES)
