"""The experiments on the layer itself: what it costs, how its implementations agree, what a row sees, what it holds.

Each experiment is a frozen table of sizes
and one batched function per condition. Rows of an identity or a bound: gap and its derived bound.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.attention import (
    IMPLEMENTATIONS,
    attend_padded,
    attend_reference,
    concatenated_features,
    mix,
    score_tables,
)
from ..model.layers import HKTAttention
from ..model.pyramid import block_average, pyramid
from ..model.theory import attention_flops, kernel_logits, level_rows, softmax_head_gap
from .instances import normal, random_layers, rows_of, score_rounding, worst_entry


@dataclass(frozen=True, kw_only=True)
class Entries(Experiment):
    """HKT-1: the entries of all score tables, counted from the tables of the layer, for every length and depth.

    Rows: T, levels, entries (lengths rounded up, as the causal pyramid needs), entries_down (rounded down, that is
    tables over whole blocks).
    """

    longest: int = 200
    most_levels: int = 8

    tiny: ClassVar = {"longest": 20}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        counts = []
        for T in range(1, self.longest + 1):
            for levels in range(1, min(self.most_levels, T.bit_length()) + 1):  # T >= 2^(levels - 1)
                x = torch.ones(T, 1, dtype=dtype, device=device)
                whole = [x]  # rows of whole blocks only: T_l rounded down
                while len(whole) < levels:
                    whole.append(block_average(whole[-1][: len(whole[-1]) // 2 * 2]))
                entries, entries_down = self._count(pyramid(x, levels)), self._count(whole)
                counts.append({"T": T, "levels": levels, "entries": entries, "entries_down": entries_down})
        return pd.DataFrame(counts)

    def _count(self, features: list[Tensor]) -> int:
        return sum(table.numel() for table in score_tables(features, features))


@dataclass(frozen=True, kw_only=True)
class MultiplyAdds(Experiment):
    """HKT-1: multiply-adds of a whole layer with one head over those of standard attention.

    Rows: T, d, levels; ratios of score entries, of scores and AV together, of the layer, of the layer run fused.
    """

    sizes: tuple[tuple[int, int], ...] = ((512, 64), (512, 128), (1024, 64), (1024, 128), (2048, 128), (8192, 128))
    most_levels: int = 5

    deterministic: ClassVar = {"entries": 1e-12, "scores_and_values": 1e-12, "layer": 1e-12}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        sizes = [(T, d, levels) for T, d in self.sizes for levels in range(1, self.most_levels + 1)]
        return pd.DataFrame(
            [{"T": T, "d": d, "levels": levels, **self._ratios(T, d, levels)} for T, d, levels in sizes]
        )

    def _ratios(self, T: int, d: int, levels: int) -> dict[str, float]:
        """Counts of a layer with these levels over those of the layer with one."""
        ours, one = attention_flops(T, d, d, levels), attention_flops(T, d, d, 1)
        return {
            "entries": ours.scores / one.scores,
            "layer": ours.total / one.total,
            "scores_and_values": (ours.scores + ours.averaging) / (one.scores + one.averaging),
            "layer_fused": attention_flops(T, d, d, levels, impl="fused").total / one.total,
        }


@dataclass(frozen=True, kw_only=True)
class Agreement(Experiment):
    """HKT-2, HKT-6: all implementations of one layer, the concatenated features, and torch's own attention.

    Rows: check, instance, gap, bound. The bound is derived: a score is a dot product of L d_k terms, and softmax is
    1-Lipschitz from scores (maximum norm) to a row of attention (l_1).
    """

    instances: int = 48
    d: int = 12
    heads: int = 2
    levels: int = 3

    tiny: ClassVar = {"instances": 3}

    def conditions(self) -> list[dict]:
        return [{"T": T, "dtype": name} for T in (4, 32, 45) for name in ("float64", "float32")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        T, dtype = condition["T"], getattr(torch, condition["dtype"])
        draw, sizes = stream(seed, "agreement", T), (self.instances, self.d, self.heads, self.levels)
        layers = random_layers(*sizes, generator=draw, dtype=dtype, device=device)
        with torch.no_grad():
            q, k, alpha = layers.scores.features(normal((self.instances, T, self.d), draw).to(device, dtype))
        v = normal((self.instances, self.heads, T, self.d // self.heads), draw).to(device, dtype)
        rounding = score_rounding(q, k, alpha)
        # |A V - A' V|_max <= |A - A'|_1 max |v|, softmax is 1-Lipschitz from scores to A; then T terms of A V
        outputs = 2 * worst_entry(v) * (rounding + (2 * T + 8) * torch.finfo(dtype).eps)
        reference = attend_reference(q, k, v, alpha)
        others = {name: attend for name, attend in IMPLEMENTATIONS.items() if name != "reference"}
        tables = [
            rows_of(name, worst_entry(attend(q, k, v, alpha) - reference), outputs) for name, attend in others.items()
        ]
        S = mix(score_tables(q, k), alpha)
        left, right = concatenated_features(q, k, alpha, split=True)
        tables.append(rows_of("concatenation", worst_entry(left @ right.mT - S), 2 * rounding))
        padded = attend_padded(left, right, v, scale=1.0)
        tables.append(rows_of("padded", worst_entry(padded - reference), outputs))
        tables.append(self._rank(S))
        e_0 = torch.zeros_like(alpha)
        e_0[..., 0] = 1.0
        standard = scaled_dot_product_attention(q[0], k[0], v, is_causal=True)
        tables.append(rows_of("one level", worst_entry(attend_reference(q, k, v, e_0) - standard), outputs))
        return pd.concat(tables, ignore_index=True)

    def _rank(self, S: Tensor) -> pd.DataFrame:
        """The first singular value beyond the rank bound, against the rounding of the product and of the SVD.

        No rows where T is so short that the bound says nothing.
        """
        T, d_k = S.shape[-1], self.d // self.heads
        bound = sum(min(d_k, rows) for rows in level_rows(T, self.levels))
        values = torch.linalg.svdvals(S)[..., bound:]
        noise = T * (T + self.levels * d_k) * torch.finfo(S.dtype).eps * worst_entry(S)
        return rows_of("rank", values[..., 0].amax(dim=1), noise) if bound < T else pd.DataFrame()


@dataclass(frozen=True, kw_only=True)
class Contents(Experiment):
    """HKT-6: do the log-odds of two keys depend on a third token? Rows: levels, instance, sensitivity.

    Keys 4 and 6 of the last query: ``sensitivity`` is the norm of the derivative of ln A_ij / A_ij' with respect to
    token 3, which row 2 of level 1 holds beside token 4.
    """

    instances: int = 64
    T: int = 8
    d: int = 4

    tiny: ClassVar = {"instances": 3}

    def conditions(self) -> list[dict]:
        return [{"levels": levels} for levels in (1, 2, 3)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        draw, sizes = stream(seed, "contents", condition["levels"]), (self.instances, self.d, 1, condition["levels"])
        layers = random_layers(*sizes, generator=draw, dtype=dtype, device=device)
        x = normal((self.instances, self.T, self.d), draw).to(device, dtype).requires_grad_()
        S = layers.scores(x)[:, 0, -1]
        gradient = torch.autograd.grad((S[:, 4] - S[:, 6]).sum(dim=0), x)[0]
        return rows({"instance": range(self.instances)}, {"sensitivity": gradient[:, 3].norm(dim=-1)})


@dataclass(frozen=True, kw_only=True)
class Convolution(Experiment):
    """HKT-6: what one head with values from level 0 does to a convolution.

    Rows: kernel, instance, distance, closed, bound. "difference": the least squared distance of w p to taps of both
    signs on a grid of w and p that holds the nearest point, and its closed form; instance 0 is (1, -1). "positive": the
    softmax of ln kappa against kappa, worst entry. "layer": the layer of the chapter, positions in its tokens, against
    the convolution with kappa > 0, worst output; "limit": the same with zeros in kappa, their logits at -``floor``.
    """

    grid: int = 401
    reach: float = 4.0
    instances: int = 32
    taps: int = 5
    T: int = 12
    floor: float = 20.0

    tiny: ClassVar = {"grid": 41, "instances": 3}

    def conditions(self) -> list[dict]:
        return [{"kernel": "difference"}, {"kernel": "positive"}, {"kernel": "layer"}, {"kernel": "limit"}]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        kernel, draw = condition["kernel"], stream(seed, "kernels", condition["kernel"])
        if kernel == "difference":
            return self._difference(draw, device, dtype)
        num = self.T if kernel == "layer" else self.taps
        kappa = torch.rand(self.instances, num, generator=draw, dtype=dtype) + 0.01
        kappa = (kappa / kappa.sum(dim=-1, keepdim=True)).to(device)
        logits = torch.stack([kernel_logits(one, self.T) for one in kappa])
        lag = torch.arange(self.T, device=device).unsqueeze(-1) - torch.arange(self.T, device=device)
        inside = (lag >= 0) & (lag < num)
        wanted = torch.where(inside, kappa[:, lag.clamp(0, num - 1)], 0.0)
        wanted = wanted / wanted.sum(dim=-1, keepdim=True)
        if kernel == "positive":
            gap = worst_entry(torch.softmax(logits, dim=-1) - wanted)
            # |ln kappa| < 8 here: its rounding, those of exp, of two sums of the taps and of two quotients
            bound = torch.full_like(gap, (2 * num + 20) * torch.finfo(dtype).eps)
        else:
            s = normal((self.instances, self.T, 1), draw).to(device, dtype)
            gap = worst_entry(self._layer(logits.clamp_min(-self.floor), s) - wanted @ s)
            # a logit of at most ``floor`` after six roundings, softmax of T scores, two sums of T terms
            bound = 2 * worst_entry(s) * (6 * self.floor + 4 * self.T + 20) * torch.finfo(dtype).eps
            if kernel == "limit":
                bound += worst_entry(s) * 2 * (self.T - 1) * math.exp(-self.floor) / kappa[:, 0]
        return rows({"instance": range(len(gap))}, {"distance": gap, "closed": 0.0, "bound": bound})

    def _difference(self, draw: torch.Generator, device: torch.device, dtype: torch.dtype) -> pd.DataFrame:
        size = torch.randint(1, self.grid // 2, (8, 2), generator=draw).to(device, dtype) * 2 * self.reach
        taps = size / (self.grid - 1) * torch.tensor([1.0, -1.0], dtype=dtype, device=device)
        taps[0] = taps[0].sign()
        w = torch.linspace(-self.reach, self.reach, self.grid, dtype=dtype, device=device).view(-1, 1, 1)
        p = torch.linspace(0, 1, self.grid, dtype=dtype, device=device).unsqueeze(-1)
        squared = (w * torch.cat([p, 1 - p], dim=-1) - taps.view(-1, 1, 1, 2)).square().sum(dim=-1)
        bound = 16 * torch.finfo(dtype).eps * taps.abs().amax(dim=-1).square()  # of w, the difference, its square
        columns = {"distance": squared.amin(dim=(1, 2)), "closed": softmax_head_gap(taps), "bound": bound}
        return rows({"instance": range(len(taps))}, columns)

    def _layer(self, logits: Tensor, s: Tensor) -> Tensor:
        """The layer with two levels on tokens (e_t, s_t): alpha_0 M_0 holds the logits, M_1 = 0, values read s_t.

        What stands above the diagonal is free, since the mask hides it; -``floor`` here.
        """
        N, T = s.shape[:2]
        layers = HKTAttention(T + 1, 1, 2, num_networks=N, impl="reference", dtype=s.dtype, device=s.device)
        with torch.no_grad():
            for weight in (*layers.scores.W_Q, *layers.scores.W_K, layers.W_V, layers.W_O):
                weight.zero_()
            scale = math.sqrt(T + 1) / layers.scores.alpha()[0, 0, 0]
            layers.scores.W_Q[0][:, :T, :T] = scale * logits.mT  # q_i = row i of the table
            layers.scores.W_K[0][:, :T, :T] = torch.eye(T).to(s)
            layers.W_V[:, T, T], layers.W_O[:, T, T] = 1.0, 1.0
            return layers(torch.cat([torch.eye(T).to(s).expand(N, T, T), s], dim=-1))[..., T:]
