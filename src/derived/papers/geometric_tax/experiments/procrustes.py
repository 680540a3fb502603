"""What distortion measures on pooled states, with nothing trained (GT-2).

symbol   name   meaning                                                        axes
D        D      Procrustes distortion of a cloud and its disturbed copy        (replicates,)
J        J      mean square of a disturbed token's jump                        (replicates,)
V        V      variance of pooled embeddings between sequences                (replicates,)
r        r      share of positions that are disturbed                          scalar
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..data.systems import lorenz
from ..model.codebooks import UniformQuantizer
from ..model.metrics import pooled_law, procrustes_distortion


def normals(seed: int, *name: str | int, shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Standard normals of a named stream."""
    return torch.randn(*shape, generator=stream(seed, *name), dtype=torch.float64).to(device)


def codes(kind: str, K: int, p: int, seed: int, replicate: int) -> Tensor:
    """A vector for each bin, of variance p: "linear" in its number, "smooth" (random waves, a tenth of the range long),
    or "random"."""
    centre = (torch.arange(K, dtype=torch.float64) + 0.5) / K
    drawn = torch.randn(p, generator=stream(seed, "code", kind, replicate), dtype=torch.float64)
    if kind == "linear":
        return (centre[:, None] - 0.5) * drawn * 12**0.5
    if kind == "smooth":
        phase = 2 * torch.pi * torch.rand(p, generator=stream(seed, "phase", replicate), dtype=torch.float64)
        return 2**0.5 * torch.cos(10 * centre[:, None] * drawn + phase)
    return torch.randn(K, p, generator=stream(seed, "code", kind, replicate), dtype=torch.float64)


@dataclass(frozen=True, kw_only=True)
class Pooled(Experiment):
    """GT-2: a tax without training. The x of Lorenz' system in 256 bins; a bin's state is its code, a sequence's
    embedding their mean; a share r of values (one at least) is disturbed by 10 % of the range. Rows: code, r,
    replicate, D, law (the pooled law at the measured J and V), J, V, J_law (2 p P(change) for random codes,
    slope^2 E dx^2 for a linear one)."""

    n: int = 800
    L: int = 512
    K: int = 256
    p: int = 12
    rates: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1)
    replicates: int = 8

    tiers: ClassVar = {"ci": {"n": 240, "L": 128}, "cpu": {}}
    tiny: ClassVar = {"n": 100, "L": 64, "replicates": 4}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        paths = lorenz(self.replicates * self.n, self.L, generator=stream(seed, "paths"))[..., 0].to(device)
        tables = []
        for replicate, x in enumerate(paths.unflatten(0, (self.replicates, self.n))):
            tables += [self.one(kind, x, seed, device, replicate) for kind in ("linear", "smooth", "random")]
        return pd.concat(tables, ignore_index=True)

    def one(self, kind: str, x: Tensor, seed: int, device: torch.device, replicate: int) -> pd.DataFrame:
        """All rates of one code; all codes see the same paths and the same noise."""
        bins = UniformQuantizer(self.K, x.min().item(), x.max().item())
        code = codes(kind, self.K, self.p, seed, replicate).to(device)
        states = code[bins.encode(x)]
        X, found = states.mean(dim=1), []
        V = X.var(dim=0).sum()
        noise = normals(seed, "noise", replicate, shape=x.shape, device=device)
        order = torch.rand(self.n, self.L, generator=stream(seed, "where", replicate)).argsort(dim=1).to(device)
        for r in self.rates:
            hit = order < max(1, round(r * self.L))
            share = hit.double().mean().item()
            after = torch.where(hit, x + 0.1 * (bins.high - bins.low) * noise, x)
            moved = code[bins.encode(after)]
            jump = (moved - states).square().sum(dim=-1)[hit]
            J = jump.mean()
            changed = (bins.encode(after) != bins.encode(x))[hit].double().mean()
            slope = (code[-1] - code[0]).square().sum() / (self.K - 1) ** 2
            steps = (bins.encode(after) - bins.encode(x))[hit].double().square().mean()
            guess = {"random": 2 * self.p * changed, "linear": slope * steps, "smooth": J}[kind]
            D = procrustes_distortion(X, moved.mean(dim=1))
            row = {"code": kind, "r": share, "replicate": replicate, "D": D, "law": pooled_law(share, self.L, J, V)}
            found.append(row | {"J": J, "V": V, "J_law": guess})
        return pd.DataFrame(found).astype({name: float for name in ("D", "law", "J", "V", "J_law")})
