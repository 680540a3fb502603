"""Mutual information by a critic: Donsker and Varadhan's bound, and MINE, in and out of sample.

symbol   name        meaning                                                             axes
P, Q     joint       distribution of pairs, and product of its margins                   (i, j) tables, or samples
T        T           critic                                                              (i, j), or scores (R, N)
R        replicates  independent data sets, each with its own critic                    leading axis
X, Y     X, Y        paired samples                                                      (R, N, d), (R, N, e)

    KL(P || Q) - (E_P T - ln E_Q e^T) = KL(P || G) >= 0,    dG = e^T dQ / E_Q e^T
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from derived.lab.checks import check_count, check_finite, check_fraction
from derived.lab.nets import Draws, linear
from derived.lab.rng import stream
from derived.lab.training import adamw, train

SHIFTS = 50  # held-out pairs are mismatched so many times


def donsker_varadhan(joint: Float[Tensor, "*b N"], product: Float[Tensor, "*b M"]) -> Float[Tensor, "*b"]:
    """E_P T - ln E_Q e^T from scores of joint pairs and of pairs of the product, in nats [prior].

    A lower bound of the mutual information only where the pairs are none that T was fitted to.

    >>> donsker_varadhan(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 1.0]))
    tensor(0.)
    """
    return joint.mean(dim=-1) - torch.logsumexp(product, dim=-1) + math.log(product.shape[-1])


class Critic(nn.Module):
    """T(x, y): two hidden layers of ReLU units with dropout, R critics side by side [code]."""

    def __init__(self, inputs: int, *, hidden: tuple[int, int], dropout: float, draws: Draws):
        super().__init__()
        first, second = hidden
        zero = torch.zeros(1)
        self.W1, self.b1 = draws.matrix("W1", first, inputs), draws.full(zero.expand(first))
        self.W2, self.b2 = draws.matrix("W2", second, first), draws.full(zero.expand(second))
        self.W3, self.b3 = draws.matrix("W3", 1, second), draws.full(zero)
        self.dropout = dropout

    def forward(self, x: Tensor, y: Tensor, generator: torch.Generator | None = None) -> Float[Tensor, "R N"]:
        """Scores; dropout only where a generator is given."""
        h = torch.cat([x, y], dim=-1)
        for W, b in ((self.W1, self.b1), (self.W2, self.b2)):
            h = (linear(h, W) + b.unsqueeze(1)).relu()
            if generator is not None and self.dropout > 0:
                keep = torch.rand(h.shape, generator=generator, dtype=h.dtype).to(h.device) >= self.dropout
                h = h * keep / (1 - self.dropout)
        return (linear(h, self.W3) + self.b3.unsqueeze(1)).squeeze(dim=-1)


class Bound(NamedTuple):
    """What MINE reports: on the batches that it was fitted to, late in training, and on pairs that it never saw."""

    in_sample: Float[Tensor, "R"]
    held_out: Float[Tensor, "R"]
    course: Float[Tensor, "R steps"]


def standardise(x: Float[Tensor, "R N d"]) -> Float[Tensor, "R N d"]:
    """Each column less its mean, over its deviation; a constant column becomes zero. Half precision becomes float32."""
    x = x.to(torch.promote_types(x.dtype, torch.float32)) - x[:, :1]  # a constant, that no rounding of the mean is left
    centred = x - x.mean(dim=1, keepdim=True)
    variance = centred.square().mean(dim=1, keepdim=True)
    return torch.where(variance > 0, centred / torch.where(variance > 0, variance, 1.0).sqrt(), 0.0)


def mine(
    X: Float[Tensor, "R N d"],
    Y: Float[Tensor, "R N e"],
    *,
    holdout: float = 0.5,
    epochs: int = 500,
    batch: int = 64,
    rate: float = 1e-4,
    hidden: tuple[int, int] = (256, 128),
    dropout: float = 0.1,
    seed: int = 0,
) -> Bound:
    """Fit a critic to a share 1 - holdout of the pairs; report Donsker and Varadhan's value in and out of sample.

    ``in_sample`` is the author's number: the mean over the last tenth of the training batches, each set against its own
    shuffle; the author shuffles all pairs at once, so that own pairs come less often. ``held_out`` asks the pairs that
    were held out, without dropout, against SHIFTS sets of mismatched pairs of them: a lower bound of the information
    whatever the critic, but for the sampling error of the second mean.
    ValueError for fewer than eight pairs on a side.

    >>> x = torch.randn(1, 64, 1, generator=stream(0, "x"))
    >>> found = mine(x, x, epochs=150, batch=32, rate=1e-2, hidden=(16, 16), dropout=0.0)
    >>> bool(found.held_out > 0.5)
    True
    """
    check_fraction("holdout", holdout)
    check_count("epochs", epochs)
    check_finite("X", X)
    check_finite("Y", Y)
    R, N = X.shape[:2]
    fresh = round(N * holdout)
    if min(fresh, N - fresh) < 8:
        raise ValueError(f"N = {N} pairs, {fresh} of them held out; give at least eight on either side")
    x, y = standardise(X), standardise(Y)
    order = torch.stack([torch.randperm(N, generator=stream(seed, "holdout", r)) for r in range(R)]).to(X.device)
    x, y = (torch.take_along_dim(each, order.unsqueeze(-1), dim=1) for each in (x, y))
    seen, unseen = N - fresh, slice(N - fresh, N)
    draws = Draws(num_networks=R, seed=seed, layer="critic", dtype=x.dtype, device=x.device)
    critic = Critic(x.shape[-1] + y.shape[-1], hidden=hidden, dropout=dropout, draws=draws)
    shuffles, drops = stream(seed, "batches"), stream(seed, "dropout")
    per_epoch = max(1, seen // batch)
    chosen = None

    def loss(step: int) -> Tensor:
        nonlocal chosen
        if step % per_epoch == 0:
            chosen = torch.rand(R, seen, generator=shuffles).argsort(dim=1).to(x.device)
        at = chosen[:, (step % per_epoch) * batch :][:, :batch].unsqueeze(-1)
        a, b = (torch.take_along_dim(each[:, :seen], at, dim=1) for each in (x, y))
        other = torch.rand(R, a.shape[1], generator=shuffles).argsort(dim=1).to(x.device).unsqueeze(-1)
        mixed = torch.take_along_dim(b, other, dim=1)
        return -donsker_varadhan(critic(a, b, drops), critic(a, mixed, drops))

    optimiser = adamw(critic, betas=(0.9, 0.999), weight_decay=0.0)
    steps = epochs * per_epoch
    course = -train(loss, optimiser, steps=steps, rate=lambda _: rate)
    held_out = _held_out(critic, x[:, unseen], y[:, unseen])
    return Bound(course[:, -max(1, steps // 10) :].mean(dim=1), held_out.double().cpu(), course)


@torch.no_grad()
def _held_out(critic: Critic, x: Tensor, y: Tensor) -> Float[Tensor, "R"]:
    """The bound on pairs against their mismatched pairs, one shift after the other."""
    shifts = torch.linspace(1, x.shape[1] - 1, min(SHIFTS, x.shape[1] - 1)).long().tolist()
    mixed = [critic(x, y.roll(shift, dims=1)) for shift in shifts]
    return donsker_varadhan(critic(x, y), torch.cat(mixed, dim=1))
