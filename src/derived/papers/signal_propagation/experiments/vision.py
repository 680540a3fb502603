"""Networks of the shape of a vision transformer against the recurrences: ours, and timm's where it is installed.

Rows as in ``measured``: one per initialisation and block.
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..model.timm_vit import TimmTransformer
from ..model.transformer import RandomTransformer, Sigmas, equiangular_tokens
from .measured import measure, recurrences


@dataclass(frozen=True, kw_only=True)
class ManyTokens(Experiment):
    """SP-13: attn_mult 2, 196 tokens, 128 blocks with LayerNorm, from the start (0.27, 0.11) of the author's run.

    The recurrence for infinitely many tokens first, ``J_infinite``, must miss.
    """

    width: int = 768
    num_heads: int = 12
    n: int = 196
    depth: int = 128
    attn_mult: float = 2.0
    q0: float = 0.27
    p0: float = 0.11
    inits: int = 32
    probes: int = 3

    tiers: ClassVar = {
        "ci": {"width": 48, "num_heads": 2, "n": 24, "depth": 12, "inits": 2, "probes": 1},
        "cpu": {"width": 384, "num_heads": 6, "probes": 1, "inits": 16},
        "gpu": {},
    }
    tiny: ClassVar = {"width": 24, "n": 8, "depth": 4}
    deterministic: ClassVar = {"J_theory": 1e-9, "J_infinite": 1e-9}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"init": init} for init in range(self.inits)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        sigmas = Sigmas().scaled(attn_mult=self.attn_mult)
        return one_network(self, "layernorm", 1.0, sigmas, condition["init"], seed, device, dtype)


@dataclass(frozen=True, kw_only=True)
class VisionTransformer(Experiment):
    """SP-15: networks of the shape of ViT-Base/16 (width 768, 12 heads, 197 tokens, depth 32), equiangular tokens.

    The notebook of the author holds the measured values of timm's network in this setting, one initialisation [repo].
    """

    width: int = 768
    num_heads: int = 12
    n: int = 197
    depth: int = 32
    alphas: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.7, 1.9)
    q0: float = 1.0
    p0: float = 0.2
    inits: int = 48
    probes: int = 5

    tiers: ClassVar = {
        "ci": {"width": 48, "num_heads": 2, "n": 16, "depth": 6, "alphas": (0.5, 1.9), "inits": 2, "probes": 1},
        "cpu": {"alphas": (0.5, 1.1, 1.9), "inits": 28, "probes": 1},
        "gpu": {},
    }
    tiny: ClassVar = {"width": 24, "n": 8, "depth": 3}
    deterministic: ClassVar = {"J_theory": 1e-9, "q_theory": 1e-9, "p_theory": 1e-9}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        cases = [("layernorm", 1.0), *(("erf", alpha) for alpha in self.alphas)]
        return [{"norm": norm, "alpha": alpha, "init": init} for norm, alpha in cases for init in range(self.inits)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm, alpha, init = (condition[name] for name in ("norm", "alpha", "init"))
        return one_network(self, norm, alpha, Sigmas(), init, seed, device, dtype)


def one_network(sizes: ManyTokens | VisionTransformer, norm, alpha, sigmas, init, seed, device, dtype) -> pd.DataFrame:
    """One initialisation with equiangular tokens, the same for every normaliser, beside its recurrences."""
    of_weights = stream(seed, "vision weights", init, device=device)
    of_tokens, of_probes = (stream(seed, f"vision {name}", init) for name in ("tokens", "probes"))
    where = {"dtype": dtype, "device": device}
    model = RandomTransformer(
        width=sizes.width,
        num_heads=sizes.num_heads,
        depth=sizes.depth,
        norm=norm,
        alpha=alpha,
        sigmas=sigmas,
        generator=of_weights,
        **where,
    )
    x = equiangular_tokens(sizes.n, sizes.width, sizes.q0, sizes.p0, batch=(1,), generator=of_tokens, **where)
    theory = recurrences(norm, alpha, sigmas, sizes.q0, sizes.p0, sizes.n, sizes.depth)
    return measure(model, x, probes=sizes.probes, generator=of_probes, theory=theory)


@dataclass(frozen=True, kw_only=True)
class TimmNetwork(Experiment):
    """SP-15 on timm's ViT-Base: the author's setting in the author's network; rows as ``VisionTransformer`` has them.

    Not among ``EXPERIMENTS``, whose rows every machine must be able to make.
    """

    n: int = 197
    width: int = 768
    depth: int = 32
    alphas: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.7, 1.9)
    q0: float = 1.0
    p0: float = 0.2
    inits: int = 8
    probes: int = 10

    tiers: ClassVar = {
        "ci": {"n": 16, "depth": 4, "alphas": (1.1,), "inits": 2, "probes": 1},
        "cpu": {"alphas": (0.5, 1.1, 1.9), "probes": 1},
        "gpu": {},
    }
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        cases = [("layernorm", 1.0), *(("erf", alpha) for alpha in self.alphas)]
        return [{"norm": norm, "alpha": alpha, "init": init} for norm, alpha in cases for init in range(self.inits)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm, alpha, init = (condition[name] for name in ("norm", "alpha", "init"))
        where = {"dtype": dtype, "device": device}
        of_weights, of_tokens, of_probes = (
            stream(seed, f"timm {name}", init) for name in ("weights", "tokens", "probes")
        )
        model = TimmTransformer(depth=self.depth, norm=norm, alpha=alpha, generator=of_weights, **where)
        x = equiangular_tokens(self.n, self.width, self.q0, self.p0, batch=(1,), generator=of_tokens, **where)
        theory = recurrences(norm, alpha, model.sigmas, self.q0, self.p0, self.n, self.depth)
        return measure(model, x, probes=self.probes, generator=of_probes, theory=theory)
