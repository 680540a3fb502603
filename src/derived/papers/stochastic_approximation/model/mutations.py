"""The loop and the running head with one line changed: each still runs and returns numbers, and loses a property.

name             change                                                    what is lost
NoMaximum        scores enter as they are, not less their largest so far   overflow: the read-out is NaN
HalfRescaled     a new maximum rescales the denominator alone              the read-out is no average of the values
Uniform          every score is 0                                          reads m in place of m + Sigma theta
steady           a_n = 1/10 in place of 1/n                                settles nowhere
hasty            a_n = 1/n^2: the steps have a finite sum                  stops on the way
dealt anew       at each time the data change hands                        goes to the root of the mean field
upside down      -h in place of h                                          runs away

symbol   name       meaning                                                                axes
-        data       slope A and noisy b of the field h = b - A x, of each step             (N, R, 2)
"""

from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor

from .attention import RunningSoftmaxAttention
from .core import StepSize, robbins_monro


class NoMaximum(RunningSoftmaxAttention):
    """Sums e^score as it is."""

    def update(self, y: Float[Tensor, "R d"]) -> None:
        if self.top is None:
            self.top, self.denominator = torch.zeros_like(y[:, 0]), torch.zeros_like(y[:, 0])
            self.numerator = torch.zeros_like(y @ self.value.mT)
        weight = torch.exp(y @ self.theta)
        self.denominator = self.denominator + weight
        self.numerator = self.numerator + weight.unsqueeze(-1) * (y @ self.value.mT)


class HalfRescaled(RunningSoftmaxAttention):
    """Forgets to rescale the numerator where a new token has the largest score."""

    def update(self, y: Float[Tensor, "R d"]) -> None:
        before = self.top
        super().update(y)
        if before is not None:
            new = torch.exp(y @ self.theta - self.top).unsqueeze(-1) * (y @ self.value.mT)
            self.numerator = (self.numerator - new) * torch.exp(self.top - before).unsqueeze(-1) + new


class Uniform(RunningSoftmaxAttention):
    """Gives every token the same weight."""

    def update(self, y: Float[Tensor, "R d"]) -> None:
        self.theta = torch.zeros_like(self.theta)
        super().update(y)


HEADS = MappingProxyType(
    {
        "none": RunningSoftmaxAttention,
        "no running maximum": NoMaximum,
        "numerator not rescaled": HalfRescaled,
        "all scores 0": Uniform,
    }
)


def linear_field(x: Float[Tensor, "R"], y: Float[Tensor, "R 2"]) -> Float[Tensor, "R"]:
    """h(x, y) = b - A x with y = (A, b).

    >>> linear_field(torch.tensor([1.0]), torch.tensor([[2.0, 5.0]]))
    tensor([3.])
    """
    return y[:, 1] - y[:, 0] * x


def dealt_anew(data: Float[Tensor, "N R *d"], generator: torch.Generator) -> Float[Tensor, "N R *d"]:
    """The data of each time in another order of the replicas, drawn anew at each time.

    >>> y = torch.arange(6.0).reshape(2, 3)
    >>> dealt_anew(y, torch.Generator().manual_seed(0)).sum(dim=1)
    tensor([ 3., 12.])
    """
    order = torch.rand(data.shape[:2], generator=generator).argsort(dim=1)
    return data[torch.arange(len(data)).unsqueeze(1), order]


def _turned(x: Tensor, y: Tensor) -> Tensor:
    return -linear_field(x, y)


# name -> the field, the steps, and what is done to the data
LOOPS = MappingProxyType(
    {
        "none": (linear_field, StepSize.power(), None),
        "steps stay at 1/10": (linear_field, StepSize.constant(0.1), None),
        "steps $1/n^2$": (linear_field, StepSize.power(alpha=2.0), None),
        "data dealt anew": (linear_field, StepSize.power(), dealt_anew),
        "$-h$ for $h$": (_turned, StepSize.power(), None),
    }
)


def ends(name: str, data: Float[Tensor, "N R 2"], generator: torch.Generator, x0: float = 0.0) -> Float[Tensor, "R"]:
    """Where the learners of a loop end.

    >>> data = torch.tensor([2.0, 1.0], dtype=torch.float64).expand(4000, 1, 2)
    >>> round(ends("none", data, torch.Generator()).item(), 3)
    0.5
    """
    field, steps, change = LOOPS[name]
    data = change(data, generator) if change else data
    return robbins_monro(field, data, steps, torch.full(data.shape[1:2], x0, dtype=data.dtype)).x[-1]


def distance_from_softmax(head: type[RunningSoftmaxAttention], tokens: Float[Tensor, "N R 2"], size: float) -> float:
    """The largest gap of a head's read-out to softmax over the stored tokens, for scores size (y_1 + y_2 / 2); NaN
    where the head has overflown.

    >>> distance_from_softmax(RunningSoftmaxAttention, torch.ones(3, 1, 2), 1.0)
    0.0
    """
    theta, eye = size * tokens.new_tensor([1.0, 0.5]), torch.eye(2, dtype=tokens.dtype)
    running = head(theta, eye, eye)
    for token in tokens:
        running.update(token)
    stored = (torch.softmax(tokens @ theta, dim=0).unsqueeze(-1) * tokens).sum(dim=0)
    return (running.read() - stored).abs().max().item()
