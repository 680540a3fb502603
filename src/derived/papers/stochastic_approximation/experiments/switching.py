"""A small transformer in a world that changes: constant steps down one stream, across the switches of its coin (SA-11).

symbol    name      meaning                                                                            axes
y         tokens    one life of tokens, cut into texts; an update reads ``batch`` texts of it          (models, N)
k_n       heard     the coin that is heard, drawn anew with probability epsilon a token                (models, N)
a         rate      constant step of plain gradient descent; the networks of a model differ in it      (rates,)
-         excess    expected log loss on texts of one coin over the entropy of that coin, in nats      (R, 2)
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab import training
from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.environments import MarkovMixture
from ..data.streams import single_stream, switching_stream
from ..model.networks import TinyAttention

#: Two coins, of bias 0.2 and 0.8.
COINS = MarkovMixture((((0.8, 0.2), (0.8, 0.2)), ((0.2, 0.8), (0.2, 0.8))), (0.5, 0.5))


@dataclass(frozen=True, kw_only=True)
class Switches(Experiment):
    """SA-11: one life per model, learned from as it comes, each text once. Arms: "context" (texts of ``context``
    tokens) and "blind" (the same network on the same tokens, each a text of its own, so that it sees no past). Both
    have the same weights, starts and data.

    Rows, every ``every`` updates: arm, rate, model, tokens (read so far), age (tokens since the coin changed), part
    ("first", "validation" or "test": the first and the second quarter and the second half of the life), heard (the
    coin), current and other (excess on fresh texts of the coin that is heard and of the other), chosen (the rate of
    least mean of both in the validation quarter, one for the arm).
    """

    models: int = 24
    rates: tuple[float, ...] = (1e-4, 1.6e-4, 2.5e-4, 4e-4, 6.3e-4, 1e-3, 1.6e-3, 2.5e-3, 4e-3, 6.3e-3, 1e-2, 1e-1)
    epsilon: float = 1 / 1600
    context: int = 32
    batch: int = 2
    updates: int = 2000
    every: int = 10
    texts: int = 8

    tiers: ClassVar = {
        "ci": {"models": 2, "rates": (1e-3, 1e-1), "updates": 80, "texts": 4, "epsilon": 1 / 400},
        "cpu": {},
    }
    tiny: ClassVar = {"updates": 12, "every": 2, "texts": 2, "context": 8}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"arm": arm} for arm in ("blind", "context")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        context = self.context if condition["arm"] == "context" else 1
        sizes = {"num_networks": self.models, "copies": len(self.rates), "seed": seed}
        net = TinyAttention(2, context, **sizes, dtype=dtype, device=device)
        length = self.updates * self.batch * self.context
        lives = [switching_stream(COINS, length, self.epsilon, stream(seed, "own life", r)) for r in range(self.models)]
        tokens, heard = (torch.stack(each) for each in zip(*lives, strict=True))
        excess = torch.stack(self.live(net, tokens.view(self.models, self.updates, -1, context), seed)).to(dtype)
        excess = excess.unflatten(1, (len(self.rates), self.models))  # (times, rates, models, 2)
        read = torch.arange(self.every, self.updates + 1, self.every) * self.batch * self.context
        now = heard[:, read - 1].T  # (times, models)
        pick = now[:, None, :, None].expand(*excess.shape[:3], 1)
        quarter = 4 * torch.arange(len(read)) // len(read)
        columns = {
            "heard": now[:, None],
            "age": ages(heard)[:, read - 1].T[:, None],
            "current": excess.gather(-1, pick).squeeze(dim=-1),
            "other": excess.gather(-1, 1 - pick).squeeze(dim=-1),
        }
        best = excess[quarter == 1].mean(dim=(0, 2, 3)).argmin()
        columns["chosen"] = (torch.arange(len(self.rates)) == best)[:, None]
        names = ["first", "validation", "test", "test"]
        times = {("tokens", "part"): (read.tolist(), [names[each] for each in quarter])}
        return rows(times | {"rate": self.rates, "model": range(self.models)}, columns)

    def live(self, net: TinyAttention, texts: Tensor, seed: int) -> list[Tensor]:
        """One step of gradient descent on each update of ``texts`` (models, updates, B, T); the excess after every
        ``every`` of them. A network's step is its rate times its gradient, so that its loss is weighted by its rate."""
        device, found = net.readout.device, []
        step = torch.tensor(self.rates, dtype=net.readout.dtype, device=device).repeat_interleave(self.models)
        probes = self.probes(texts.shape[-1], seed)

        def loss(update: int) -> Tensor:
            if update and update % self.every == 0:
                found.append(excess_on(net, probes))
            tokens = texts[:, update].repeat(len(self.rates), 1, 1).to(device)
            return step * training.mean_cross_entropy(net(tokens), tokens)

        optimiser = torch.optim.SGD(net.parameters())
        training.train(loss, optimiser, steps=self.updates, rate=lambda update: 1.0)
        return [*found, excess_on(net, probes)]

    def probes(self, length: int, seed: int) -> Tensor:
        """Texts of each coin to judge by, a model's own, the same at all its rates: (models, coins, B, T)."""
        coins = [
            [single_stream(COINS, k, self.texts, length, stream(seed, "own probe", k, r)).tokens for k in (0, 1)]
            for r in range(self.models)
        ]
        return torch.stack([torch.stack(each) for each in coins])


def ages(heard: Tensor) -> Tensor:
    """Tokens since the coin changed, 1 at the first of a coin: (models, N) to the same.

    >>> ages(torch.tensor([[0, 0, 1, 1, 1, 0]]))
    tensor([[1, 2, 1, 2, 3, 1]])
    """
    place = torch.arange(heard.shape[-1]).expand_as(heard)
    new = torch.ones_like(heard, dtype=torch.bool)
    new[:, 1:] = heard[:, 1:] != heard[:, :-1]
    return place - torch.where(new, place, 0).cummax(dim=-1).values + 1


@torch.no_grad()
def excess_on(net: TinyAttention, texts: Tensor) -> Tensor:
    """KL(coin | network) at every place, mean over a model's texts of that coin (models, coins, B, T): (R, coins)."""
    law = torch.tensor(COINS.matrices[:, 0])  # (coins, S)
    each = texts.flatten(1, 2).repeat(len(net.readout) // len(texts), 1, 1)
    logits = net(each.to(net.readout.device))
    log_p = torch.log_softmax(logits.double().cpu(), dim=-1).unflatten(1, texts.shape[1:3])
    return (law * law.log()).sum(dim=-1) - (law[:, None, None] * log_p).sum(dim=-1).mean(dim=(-2, -1))
