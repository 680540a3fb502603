"""Six arms on three systems, the blur of a label, and three encoders with causality asked: after the paper's controls.

Every arm reads the same tokens through the same encoder from the same first weights; only what is asked of it differs.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.nets import Draws
from derived.lab.rng import stream

from ..model.encoders import Size
from ..model.metrics import pooled_law, procrustes_distortion
from .fits import CI, CPU, DISTURBANCE, ENCODERS, SHARES, SHORT, Arm, Data, Fits, data, disturbed, fit, paths

SYSTEMS = ("lorenz", "oscillators", "waveforms")
AT_ONCE = 500  # sequences of each network that are read at once: all those of ``Order.law`` at tier gpu fit no card
ARMS = ("ce", "blurred", "shuffled", "codes", "scalar", "untrained")


@dataclass(frozen=True, kw_only=True)
class Swaps(Fits):
    """What ``Arms`` and ``Heads`` share: after the paper's swap of the head, arms on three systems, judged also during
    training. Rows: system, arm, and those of ``Fits``."""

    looks: tuple[float, ...] = (0.1, 0.3)  # shares of the steps

    arms: ClassVar[tuple[str, ...]] = ARMS
    shift: ClassVar[int] = 0  # of the seed

    def conditions(self) -> list[dict]:
        return [{"system": system, "arm": arm} for system in SYSTEMS for arm in self.arms]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        looks = sorted({int(share * self.steps) for share in self.looks})
        return self.fitted(**condition, looks=looks, seed=seed + self.shift, device=device, dtype=dtype)


@dataclass(frozen=True, kw_only=True)
class Arms(Swaps):
    """GT-7: the picture of all six arms. Rows as of ``Swaps``."""

    tiers: ClassVar = {"ci": CI, "cpu": CPU, "gpu": {}}


@dataclass(frozen=True, kw_only=True)
class Heads(Swaps):
    """GT-7.a, d, h, 7b.c: the two heads that they compare, blurred labels and the control, judged also before the last
    tenth of the steps, in networks that share no draw with ``Arms``. Rows as of ``Swaps``."""

    looks: tuple[float, ...] = (0.1, 0.9)

    arms: ClassVar = ("ce", "blurred", "shuffled", "scalar")
    shift: ClassVar = 1
    tiers: ClassVar = {
        "ci": CI,
        "cpu": {
            **CPU,
            "networks": 40,
            "steps": 1000,
            "rates": (6.3e-3, 1e-2, 1.6e-2, 2.5e-2, 4e-2, 6.3e-2),
            "search": 4,
        },
        "gpu": {},
    }


#: The rates that the search of ``Arms`` chose at tier ``cpu``, by system.
CHOSEN = {"lorenz": {"ce": 0.03, "scalar": 0.03}, "oscillators": {"ce": 0.03, "scalar": 0.03}}
CHOSEN |= {"waveforms": {"ce": 0.01, "scalar": 0.03}}


@dataclass(frozen=True, kw_only=True)
class Judges(Fits):
    """GT-7: the networks of ``Arms`` under hard labels and under squared error, at the rates that its search chose
    (``CHOSEN``), all judged together on one draw of paths and of their disturbance, and on another, many times.

    In ``Arms`` each pair has a draw of its own; here one sees what a common draw would have said. Rows: system, arm,
    draw, replicate, distortion.
    """

    draws: int = 24

    tiers: ClassVar = {"ci": {**CI, "draws": 3}, "cpu": CPU, "gpu": {}}

    def conditions(self) -> list[dict]:
        return [{"system": system, "arm": arm} for system in SYSTEMS for arm in ("ce", "scalar")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        system, arm = condition["system"], condition["arm"]
        each = {"system": system, "num": self.paths, "judged": self.judged, "length": self.length, "noise": 0.0}
        found = data(**each, networks=self.networks, seed=seed, role="fit")
        model = Arm(self, arm, found.values, "attention", False, seed=seed, role="fit", device=device, dtype=dtype)
        rates = torch.full((self.networks,), CHOSEN[system][arm], dtype=torch.float64)
        fit(model, found, steps=self.steps, batch=self.batch, rates=rates)
        seen = []
        for draw in range(self.draws):
            states = paths(system, self.judged, self.length, stream(seed, system, "judged", draw))
            clean = (states[..., 0] - found.low) / (found.high - found.low)
            with torch.no_grad():
                h = model.model(model.read(clean[None]))
            struck = disturbed(clean, stream(seed, system, "disturbance", draw))[:, None]
            seen.append(model.distortion(h, struck))
        return rows({"draw": range(self.draws), "replicate": range(self.networks)}, {"distortion": torch.stack(seen)})


@dataclass(frozen=True, kw_only=True)
class Order(Fits):
    """GT-7c, 7b.a, 7.f: Lorenz; what a blurred label changes, taken apart. Beside hard and blurred labels there are
    "smoothed" (as soft, no neighbours), "disordered" (blurred along a random order of the bins), "coarse" (hard labels
    as wide as the blur's standard deviation) and "coarser" (of about its entropy). GT-2: the pooled law on each of
    these networks.

    Rows: arm, and those of ``Fits``; at the end of each judged network also bias (share of J that is the mean square of
    a sequence's mean displacement), unbiased (the same where each displacement has a sign drawn at random: nothing is
    to be found), slope (of ln D in ln r over the shares of struck positions), law (D over the pooled law with this
    bias, geometric mean over the shares).
    """

    looks: tuple[float, ...] = (0.1, 0.3, 0.9)
    struck: int = 2000  # sequences on which the pooled law is tried
    strikes: int = 4  # single tokens struck in each of them

    tiers: ClassVar = {
        "ci": {**CI, "struck": 40},
        "cpu": {
            **CPU,
            "networks": 16,
            "steps": 1000,
            "rates": (0.01, 0.016, 0.025, 0.04, 0.063),
            "search": 4,
            "struck": 500,
        },
        "gpu": {},
    }

    def conditions(self) -> list[dict]:
        return [{"arm": arm} for arm in ("ce", "blurred", "smoothed", "coarse", "coarser", "disordered")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        looks = sorted({int(share * self.steps) for share in self.looks})
        return self.fitted(**condition, looks=looks, also=self.law, seed=seed, device=device, dtype=dtype)

    @torch.no_grad()
    def law(self, arm: Arm, found: Data) -> dict[str, Tensor]:
        """The pooled law of each network at the end: its terms from single tokens that are struck, D from shares."""
        R, n, L, q = len(arm.centres), self.struck, self.length, self.strikes
        states = [paths("lorenz", n, L, stream(arm.seed, "law", r)) for r in range(R)]
        x = (torch.stack(states)[..., 0] - found.low) / (found.high - found.low)  # (R, n, L)

        def pool(values: Tensor) -> Tensor:
            parts = arm.read(values).split(AT_ONCE, dim=1)
            return torch.cat([arm.model(part).mean(dim=2) for part in parts], dim=1).double().cpu()

        clean = pool(x)
        where = torch.rand(R, n, L, generator=stream(arm.seed, "law", "where")).argsort(dim=-1)[..., :q]
        shift = DISTURBANCE * torch.randn(R, n, q, generator=stream(arm.seed, "law", "shift"), dtype=x.dtype)
        ones = [pool(x.scatter_add(-1, where[..., [i]], shift[..., [i]])) - clean for i in range(q)]
        moved = L * torch.stack(ones)  # (q, R, n, p)
        J = moved.square().sum(dim=-1).mean(dim=(0, 2))
        both = moved.sum(dim=0).square().sum(dim=-1).mean(dim=1)  # q J + q (q - 1) bias
        V = clean.var(dim=1, correction=0).sum(dim=-1)
        noisy = zip(*(disturbed(each, stream(arm.seed, "law", "D", r)) for r, each in enumerate(x)), strict=True)
        D = torch.stack([procrustes_distortion(clean, pool(torch.stack(each))) for each in noisy])
        bias = (both / q - J) / (q - 1)
        sign = 1 - 2 * torch.randint(2, (q, R, n, 1), generator=stream(arm.seed, "law", "signs"))
        none = ((moved * sign).sum(dim=0).square().sum(dim=-1).mean(dim=1) / q - J) / (q - 1)
        over = torch.stack([d / pooled_law(r, L, J, V, bias) for d, r in zip(D, SHARES, strict=True)])
        r = torch.tensor(SHARES, dtype=D.dtype).log()
        slope = ((r - r.mean()).unsqueeze(-1) * D.log()).sum(dim=0) / (r - r.mean()).square().sum()
        return {"bias": bias / J, "unbiased": none / J, "slope": slope, "law": over.log().mean(dim=0).exp()}


@dataclass(frozen=True, kw_only=True)
class Blur(Fits):
    """GT-7b: Lorenz, labels blurred by more and more; blur 0 is the hard label.

    Rows: blurred (the width, a share of the range), and those of ``Fits``.
    """

    blurs: tuple[float, ...] = (0.0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16)

    tiers: ClassVar = {
        "ci": {**CI, "blurs": (0.0, 0.1)},
        "cpu": {**SHORT, "blurs": (0.0, 0.005, 0.01, 0.04, 0.16)},
        "gpu": {},
    }

    def conditions(self) -> list[dict]:
        return [{"blurred": blur} for blur in self.blurs]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        blur = condition["blurred"]
        size = replace(self, blur=blur) if blur else self
        return size.fitted(arm="blurred" if blur else "ce", seed=seed, device=device, dtype=dtype)


@dataclass(frozen=True, kw_only=True)
class Encoders(Fits):
    """GT-9: Lorenz; three causal encoders, and the convolution whose short filters see the next token, under hard
    labels and under the squared error of the value, judged also before the last tenth of the steps.

    Rows: encoder, arm, and those of ``Fits``.
    """

    tiers: ClassVar = {
        "ci": CI,
        "cpu": {**SHORT, "networks": 24, "steps": 1000, "rates": (0.01, 0.016, 0.025, 0.04, 0.063, 0.1, 0.16)},
        "gpu": {},
    }
    looks: ClassVar[tuple[float, ...]] = (0.1, 0.9)

    def conditions(self) -> list[dict]:
        return [{"encoder": encoder, "arm": arm} for encoder in ENCODERS for arm in ("ce", "scalar")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        looks = sorted({int(share * self.steps) for share in self.looks})
        return self.fitted(**condition, looks=looks, seed=seed + 1, device=device, dtype=dtype)


@dataclass(frozen=True, kw_only=True)
class Causality(Experiment):
    """GT-9: how much the hidden state at a position moves when one later token is another, at random weights.

    Rows: encoder, instance, position (of the token that is changed); ahead (largest change of an earlier state),
    at (of the state at the position itself), bound (rounding: states are of order one).
    """

    instances: int = 20
    length: int = 24
    width: int = 16

    tiers: ClassVar = {"ci": {}, "cpu": {"instances": 100}, "gpu": {"instances": 400}}
    tiny: ClassVar = {"instances": 6}

    def conditions(self) -> list[dict]:
        return [{"encoder": encoder} for encoder in ENCODERS]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        encoder, n, L = condition["encoder"], self.instances, self.length
        draws = Draws(num_networks=n, seed=seed, layer="causality", dtype=dtype, device=device)
        model = ENCODERS[encoder](Size(codes=10, outputs=1, length=L, width=self.width), draws)
        generator = stream(seed, "causality")
        tokens = torch.randint(10, (n, 1, L), generator=generator).to(device)
        position = torch.randint(1, L, (n,), generator=generator).to(device)
        other = tokens.clone()
        each = torch.arange(n, device=device)
        other[each, 0, position] = (tokens[each, 0, position] + 1) % 10
        moved = (model(tokens) - model(other)).abs().amax(dim=-1).squeeze(1)  # (n, L)
        before = torch.arange(L, device=device) < position.unsqueeze(-1)
        columns = {"position": position, "ahead": (moved * before).amax(dim=-1), "at": moved[each, position]}
        return rows({"instance": range(n)}, columns | {"bound": 64 * torch.finfo(dtype).eps})
