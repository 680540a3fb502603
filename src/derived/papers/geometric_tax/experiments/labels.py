"""What cross-entropy knows of the order of labels (GT-3), and the length of the curve that it draws (GT-4).

symbol   name     meaning                                                       axes
K        K        labels                                                        scalar
sigma    sigma    width of a blurred label, as a share of the range             scalar
l        length   Fisher-Rao length of m -> p(.|m)                              scalar
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream
from derived.lab.training import adamw, train

from ..model.labels import bin_law, chord_length, fisher_rao_length, path_length, softmax_gradients, staircase_length

EPSILON = float(np.finfo(float).eps)


class Small(nn.Module):
    """Two layers of tanh units under a softmax of K rows."""

    def __init__(self, inputs: int, width: int, K: int, seed: int, instance: int, dtype: torch.dtype):
        super().__init__()
        g = stream(seed, "small", instance)
        for name, shape in (("A", (width, inputs)), ("B", (width, width)), ("W", (K, width))):
            weight = torch.randn(*shape, generator=g, dtype=dtype) / math.sqrt(shape[1])
            self.register_parameter(name, nn.Parameter(weight))

    def hidden(self, x: Tensor) -> Tensor:
        """States under the softmax."""
        return torch.tanh(torch.tanh(x @ self.A.mT) @ self.B.mT)


@dataclass(frozen=True, kw_only=True)
class Relabelled(Experiment):
    """GT-3: labels renamed by a permutation, the rows of the softmax with them. Rows: instance, loss and gradient
    (largest gap of each loss and of its gradient in h), course (of the encoder's weights after 60 steps of AdamW
    with decay, relative), squared (the same of a scalar head's loss: control, not small), bound.

    Rounding: sums of K exponentials in another order, and 60 small steps that carry it on: 64 K of the last digit.
    """

    instances: int = 8
    K: int = 24
    width: int = 16
    n: int = 64
    steps: int = 60

    tiny: ClassVar = {"instances": 2, "steps": 20}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return pd.DataFrame([self.one(seed, device, dtype, i) for i in range(self.instances)])

    def one(self, seed: int, device: torch.device, dtype: torch.dtype, instance: int) -> dict[str, float]:
        """One network, one set of labels, one permutation."""
        g = stream(seed, "labels", instance)
        x = torch.randn(self.n, 4, generator=g, dtype=dtype).to(device)
        y = torch.randint(self.K, (self.n,), generator=g).to(device)
        new = torch.randperm(self.K, generator=g).to(device)
        plain, renamed = (Small(4, self.width, self.K, seed, instance, dtype).to(device) for _ in range(2))
        with torch.no_grad():
            renamed.W[new] = plain.W.clone()
        (loss, slope), (other, turned) = (
            softmax_gradients(net.W.detach(), net.hidden(x).detach(), label)
            for net, label in ((plain, y), (renamed, new[y]))
        )
        scale = loss.max() + slope.abs().max()
        for net, label in ((plain, y), (renamed, new[y])):
            optimiser = adamw(net, betas=(0.9, 0.99), weight_decay=0.01)
            train(
                lambda _, n=net, t=label: cross_entropy(n.hidden(x) @ n.W.mT, t),
                optimiser,
                steps=self.steps,
                rate=_rate,
            )
        pairs = [(getattr(plain, name).detach(), getattr(renamed, name).detach()) for name in "AB"]
        course = max(((a - b).abs().max() / a.abs().max()).item() for a, b in pairs)
        squared = ((y - new[y]).double() / self.K).square().mean()
        row = {"instance": instance, "loss": ((loss - other).abs().max() / scale).item()}
        row |= {"gradient": ((slope - turned).abs().max() / scale).item(), "course": course, "squared": squared.item()}
        return row | {"bound": 64 * self.K * EPSILON}


def _rate(_: int) -> float:
    return 0.01


def best_linear(features: Tensor, target: Tensor) -> float:
    """The least mean square error of a linear map with an intercept."""
    design = torch.cat([features, torch.ones_like(features[:, :1])], dim=1)
    fit = torch.linalg.lstsq(design, target.unsqueeze(-1)).solution
    return float((design @ fit - target.unsqueeze(-1)).square().mean())


def least_cross_entropy(features: Tensor, y: Tensor, K: int, ridge: float = 1e-3) -> float:
    """The least mean cross-entropy of softmax(W h + b) plus ridge / 2 |W|^2, by Newton's twin L-BFGS: it is convex."""
    design = torch.cat([features, torch.ones_like(features[:, :1])], dim=1)
    W = torch.zeros(K, design.shape[1], dtype=design.dtype, device=design.device, requires_grad=True)
    solver = torch.optim.LBFGS(
        [W], max_iter=400, tolerance_grad=1e-10, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        solver.zero_grad()
        loss = cross_entropy(design @ W.mT, y) + ridge / 2 * W.square().sum()
        loss.backward()
        return loss

    solver.step(closure)
    return closure().item()


@dataclass(frozen=True, kw_only=True)
class Refits(Experiment):
    """GT-3: the same features, bins in their order or renamed at random, both heads fitted to their minimum. Rows:
    labelling, replicate, cross_entropy, squared (in squared bins)."""

    n: int = 200
    K: int = 8
    p: int = 6
    replicates: int = 8

    tiny: ClassVar = {"n": 120, "K": 6, "p": 4, "replicates": 3}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found = []
        for replicate in range(self.replicates):
            g = stream(seed, "refit", replicate)
            z = torch.rand(self.n, generator=g, dtype=dtype).to(device)
            phase, pace = torch.rand(2, self.p, generator=g, dtype=dtype).to(device)
            features = torch.sin(6 * pace * z[:, None] + 6 * phase)
            noise = 0.05 * torch.randn(self.n, generator=g, dtype=dtype).to(device)
            y = ((z + noise) * self.K).floor().long().clamp(0, self.K - 1)
            new = torch.randperm(self.K, generator=g).to(device)
            for labelling, label in (("ordered", y), ("renamed", new[y])):
                row = {
                    "labelling": labelling,
                    "replicate": replicate,
                    "squared": best_linear(features, label.to(dtype)),
                }
                found.append(row | {"cross_entropy": least_cross_entropy(features, label, self.K)})
        return pd.DataFrame(found)


@dataclass(frozen=True, kw_only=True)
class FisherRao(Experiment):
    """GT-4: l(K, sigma) by quadrature. Rows: K, sigma, length, chain (sum of angles between 4,000 places, the slow
    twin), blur_cap = 1 / sigma, steps_cap = pi (K - 1), cap (the smaller), floor (what K - 1 boundaries far apart
    cost at least), over (l less the cap, relative)."""

    codes: tuple[int, ...] = (2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    sigmas: tuple[float, ...] = (0.0005, 0.002, 0.005, 0.02, 0.05, 0.2)
    chain: int = 4000
    chain_to: int = 32

    tiny: ClassVar = {"codes": (2, 5, 40), "sigmas": (0.002, 0.02, 0.2)}
    deterministic: ClassVar = {"length": 1e-6, "chain": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"sigma": sigma} for sigma in self.sigmas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        sigma, found = condition["sigma"], []
        for K in self.codes:
            length, steps = fisher_rao_length(K, sigma), staircase_length(K)
            chain = chord_length(K, sigma, self.chain) if self.chain_to >= K else np.nan
            row = {"K": K, "length": length, "chain": chain, "blur_cap": 1 / sigma, "steps_cap": steps}
            found.append(row | {"cap": min(1 / sigma, steps), "floor": staircase_floor(K, sigma)})
        table = pd.DataFrame(found)
        return table.assign(over=table["length"] / table["cap"] - 1)


def staircase_floor(K: int, sigma: float) -> float:
    """(K - 1) (4 arcsin sqrt Phi(1 / (2 K sigma)) - pi): the crossing of each boundary alone, from mid bin to mid
    bin."""
    far = 0.5 * (1 + math.erf(1 / (2 * K * sigma) / math.sqrt(2)))
    return (K - 1) * (4 * math.asin(math.sqrt(far)) - math.pi)


#: Where the explorer's sliders stop.
STOPS_K = (4, 6, 8, 11, 16, 23, 32, 45, 54, 64)
STOPS_SIGMA = (0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1)


@dataclass(frozen=True, kw_only=True)
class LawGrid(Experiment):
    """The explorer's grid: the law of the bin at places m, and the length. Rows: sigma, K, m, bin, p, length, blur_cap,
    steps_cap."""

    codes: tuple[int, ...] = STOPS_K
    sigmas: tuple[float, ...] = STOPS_SIGMA
    places: tuple[float, ...] = (0.41, 0.45, 0.49)  # neighbours: in one bin of four, in three of sixty-four

    tiny: ClassVar = {"codes": (4, 8), "sigmas": (0.01, 0.1)}
    deterministic: ClassVar = {"length": 1e-6, "p": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"sigma": sigma, "K": K} for sigma in self.sigmas for K in self.codes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        sigma, K = condition["sigma"], condition["K"]
        columns = {"p": bin_law(np.array(self.places), K, sigma), "length": fisher_rao_length(K, sigma)}
        columns |= {"blur_cap": 1 / sigma, "steps_cap": staircase_length(K)}
        return rows({"m": self.places, "bin": range(K)}, columns)


@dataclass(frozen=True, kw_only=True)
class Path(Experiment):
    """The explorer's middle panel: how long the curve is up to m. Rows: sigma, K, m, path."""

    codes: tuple[int, ...] = STOPS_K
    sigmas: tuple[float, ...] = STOPS_SIGMA
    places: int = 181

    tiny: ClassVar = {"codes": (4,), "sigmas": (0.01,)}
    deterministic: ClassVar = {"path": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"sigma": sigma, "K": K} for sigma in self.sigmas for K in self.codes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        m = np.linspace(0, 1, self.places)
        return rows({"m": m.tolist()}, {"path": path_length(m, condition["K"], condition["sigma"])})
