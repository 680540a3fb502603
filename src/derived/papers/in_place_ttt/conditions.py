"""Four conditions of valid test-time training, as self-tests of any model that scores a text while it writes.

causal                 output n does not move, not by a bit, when a later token does
normalised             what is scored is a distribution over the whole vocabulary
scored before updated  output n is made with the state before the write of token n
one pass               each token is read once, in order

Two texts besides. Random tokens are impossible data: whoever is right there more often than by chance has seen the
future. A text that repeats itself is a positive control: who is wrong there may meet the conditions by doing nothing.

A model takes a ``Text`` and returns the probabilities of the token after each, (n, V). It gets tokens by ``text.read``
and hands what it writes through ``text.keep``, which lets the tests drop the write of one token.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot, pad

BREAKS = ("", "taps cross by two", "not normalised", "written first", "read twice")


@dataclass
class Text:
    """Tokens that note how they are read; the write of the token ``muted`` is dropped."""

    ids: Int[Tensor, "n"]
    muted: int = -1
    reads: list[int] = field(default_factory=list)

    def read(self, start: int, stop: int) -> Int[Tensor, "m"]:
        """The tokens of a span, which are noted as read."""
        self.reads += range(start, min(stop, len(self.ids)))
        return self.ids[start:stop]

    def keep(self, values: Float[Tensor, "m d"], start: int) -> Float[Tensor, "m d"]:
        """What is written for the tokens from ``start`` on, without the muted one."""
        return values * (torch.arange(start, start + len(values)) != self.muted).unsqueeze(-1)


def self_tests(
    model: Callable[[Text], Float[Tensor, "n V"]], ids: Int[Tensor, "n"], vocabulary: int, tolerance: float = 1e-9
) -> dict[str, bool]:
    """Which of the four conditions a model meets on a text: it is run with each token changed and each write dropped.

    What must not move may not move by a bit; ``tolerance`` is what a sum of probabilities may be off one.

    >>> model, ids = reader(vocabulary=5, chunk=3), torch.tensor([0, 1, 2, 0, 3, 1, 4, 0])
    >>> all(self_tests(model, ids, vocabulary=5).values())
    True
    """
    text = Text(ids)
    outputs = model(text)
    causal = first = True
    for at in range(len(ids)):
        other = model(Text(torch.where(torch.arange(len(ids)) == at, (ids + 1) % vocabulary, ids)))
        causal &= torch.equal(outputs[:at], other[:at])
        first &= torch.equal(outputs[at], model(Text(ids, muted=at))[at])
    whole = outputs.shape == (len(ids), vocabulary) and bool((outputs >= 0).all())
    sums = whole and bool(((outputs.sum(dim=-1) - 1).abs() <= tolerance).all())
    once = text.reads == list(range(len(ids)))
    return {"causal": causal, "normalised": sums, "scored before updated": first, "one pass": once}


def share_right(model: Callable[[Text], Float[Tensor, "n V"]], ids: Int[Tensor, "n"]) -> float:
    """The share of the tokens in the second half of a text that were the likeliest before they were read.

    >>> share_right(reader(vocabulary=16, chunk=3), torch.arange(16).repeat(4))
    1.0
    """
    right = model(Text(ids))[:-1].argmax(dim=-1) == ids[1:]
    return right[len(ids) // 2 - 1 :].double().mean().item()


def reader(*, vocabulary: int, chunk: int, eta: float = 2.0, broken: str = "") -> Callable[[Text], Tensor]:
    """A model whose keys are embeddings and whose values are next tokens, whole or broken in one of the ways BREAKS.

    >>> reader(vocabulary=2, chunk=2)(Text(torch.tensor([0, 1, 0])))[2].argmax()  # a b a: b
    tensor(1)
    """

    def values(s: Tensor, later: Tensor) -> Tensor:
        ahead = 2 if broken == "taps cross by two" else 1
        known = pad(torch.cat([s, later[: ahead if ahead == 2 else 0]]), (0, 0, 0, 2))
        return sum(known[k : k + len(s)] for k in range(1, ahead + 1))

    def model(text: Text) -> Tensor:
        n, W, outputs, held = len(text.ids), torch.zeros(vocabulary, vocabulary).double(), [], None
        for _ in range(2 if broken == "read twice" else 1):
            outputs = []
            for start in range(0, n, chunk):
                s = one_hot(text.read(start, start + chunk), vocabulary).double()
                if held is not None:  # the chunk before is written once the next one is known
                    W = W + eta * text.keep(values(held[0], s), held[1]).mT @ held[0]
                if broken == "written first":
                    W = W + eta * text.keep(values(s, s[:0]), start).mT @ s
                scores = (s @ W.mT).softmax(dim=-1)
                outputs.append(scores + (s @ W.mT > 0) if broken == "not normalised" else scores)
                held = None if broken == "written first" else (s, start)
        return torch.cat(outputs)

    return model
