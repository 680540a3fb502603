"""The scores as a kernel: when they are positive semidefinite, and their symmetric and antisymmetric parts."""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..model.attention import causal_mask, mix, score_tables
from ..model.pyramid import pyramid
from ..model.theory import (
    bilinear_form,
    inertia,
    mixture_counterexample,
    reaching_tokens,
    symmetric_antisymmetric,
    tied_keys,
)
from .instances import normal, random_layers, rows_of, worst_entry

REACH = 4.0  # largest score in modulus where an exponential is taken


@dataclass(frozen=True, kw_only=True)
class Forms(Experiment):
    """HKT-4: the condition sym(M_l) psd, its necessity, the inertia of generic heads, tied projections, a psd mixture.

    Rows: check, instance, gap, bound. "psd" and "exponential": how far the least eigenvalue is below 0;
    "inertia", "tied" and "sign" (of the score that "necessity" makes, which is negative): 0 where the prediction is
    right, else 1 or more; "mixture": minus z^T S z at the witness.
    """

    instances: int = 64
    T: int = 12
    d: int = 5
    levels: int = 3
    widths: tuple[tuple[int, int], ...] = ((4, 1), (4, 2), (9, 3), (16, 8), (64, 16))

    tiny: ClassVar = {"instances": 4}

    def conditions(self) -> list[dict]:
        return [{"statement": name} for name in ("sufficient", "necessary", "inertia", "tied", "mixture")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        draw = stream(seed, "forms", condition["statement"])
        return getattr(self, condition["statement"])(draw, device)

    def sufficient(self, draw: torch.Generator, device: torch.device) -> pd.DataFrame:
        """Tied keys on every level: sym(S) and its entrywise exponential have no negative eigenvalue."""
        N, T, d, L = self.instances, self.T, self.d, self.levels
        layers = random_layers(N, d, 1, L, generator=draw, dtype=torch.float64, device=device)
        rows = [each.detach() for each in layers.scores.pyramid(normal((N, T, d), draw).to(device))]
        queries, keys, sizes = [], [], []
        for z, W in zip(rows, layers.scores.W_Q, strict=True):
            skew, root = (normal((N, d, d), draw).to(device) for _ in range(2))
            W_Q = W.detach().mT
            queries.append(z @ W_Q)
            keys.append(z @ tied_keys(W_Q, skew, root))
            sizes.append(z.abs() @ tied_keys(W_Q.abs(), skew.abs(), root.abs()) + z.abs() @ (W_Q.abs() @ skew.abs().mT))
        alpha = layers.scores.alpha().detach().squeeze(1)
        S = symmetric_antisymmetric(mix(score_tables(queries, keys), alpha)).symmetric
        absolute = [z.abs() @ W.detach().abs().mT for z, W in zip(rows, layers.scores.W_Q, strict=True)]
        size = worst_entry(mix(score_tables(absolute, sizes), alpha))
        # a score: sums of d, d, d and d terms one in another, L levels, T rows in the eigenvalue
        noise = T * (4 * d + L + T + 10) * torch.finfo(S.dtype).eps * size
        scale = REACH / worst_entry(S)
        E = torch.exp(scale.view(-1, 1, 1) * S)
        noise_of_E = T * torch.exp(torch.tensor(REACH)) * (scale * noise / T + (T + 4) * torch.finfo(S.dtype).eps)
        least, least_of_E = (torch.linalg.eigvalsh(each)[:, 0] for each in (S, E))
        checks = (("psd", least, noise), ("exponential", least_of_E, noise_of_E))
        tables = [rows_of(name, (-value).clamp_min(0), bound) for name, value, bound in checks]
        return pd.concat(tables, ignore_index=True)

    def necessary(self, draw: torch.Generator, device: torch.device) -> pd.DataFrame:
        """A negative direction of one level's form becomes a negative diagonal score, by the choice of tokens."""
        N, T, d, L = self.instances, self.T, self.d, self.levels
        i = 2 ** (L - 1)
        W_Q, W_K = (normal((L, N, d, d), draw).to(device) for _ in range(2))
        M = bilinear_form(W_Q, W_K)
        values, vectors = torch.linalg.eigh(symmetric_antisymmetric(M).symmetric)
        chosen, each = torch.randint(L, (N,), generator=draw).to(device), torch.arange(N, device=device)
        u, least = vectors[chosen, each, :, 0], values[chosen, each, 0]
        targets = torch.zeros(N, L, d, dtype=M.dtype, device=device)
        targets[each, chosen] = u
        X = reaching_tokens(torch.eye(L, dtype=M.dtype), T, i).to(device) @ targets
        alpha = torch.softmax(normal((N, L), draw), dim=-1).to(device)
        S = mix([z @ form @ z.mT for z, form in zip(pyramid(X, L), M, strict=True)], alpha)
        gap = S[:, i, i] - alpha[each, chosen] * least
        # T + 2 d roundings of terms of size |X|^2 |M|; the tokens come out of a system of condition at most 2^L
        size = (alpha * M.flatten(2).norm(dim=-1).mT).sum(dim=-1) * X.flatten(1).square().sum(dim=-1)
        bound = 2**L * (T + 2 * d) * torch.finfo(M.dtype).eps * size
        generic = least < 0
        necessity = rows_of("necessity", gap.abs()[generic], bound[generic])
        sign = rows_of("sign", (S[generic, i, i] >= 0).long(), 0.5)
        return pd.concat([necessity, sign], ignore_index=True)

    def inertia(self, draw: torch.Generator, device: torch.device) -> pd.DataFrame:
        """Random heads with 2 d_k <= d: d_k positive and d_k negative eigenvalues."""
        tables = []
        for d, d_k in self.widths:
            W_Q, W_K = (normal((self.instances, d, d_k), draw).to(device) for _ in range(2))
            positive, negative, _ = inertia(bilinear_form(W_Q, W_K))
            wrong = (positive - d_k).abs() + (negative - d_k).abs()
            tables.append(rows_of("inertia", wrong, 0.5))
        return pd.concat(tables, ignore_index=True)

    def tied(self, draw: torch.Generator, device: torch.device) -> pd.DataFrame:
        """W_K = W_Q R is psd iff R + R^T is; one column outside the span of W_Q always breaks it."""
        N, d, d_k = self.instances, 9, 3
        W_Q, skew, root, outside = (
            normal(shape, draw).to(device) for shape in ((N, d, d_k), (N, d_k, d_k), (N, d_k, d_k), (N, d, 1))
        )
        bad = 0.1 + normal((N, 1, 1), draw).abs().to(device)  # less than the least eigenvalue: R + R^T loses psd
        shift = torch.linalg.eigvalsh(root @ root.mT)[:, :1].unsqueeze(-1) + bad
        good_keys = tied_keys(W_Q, skew, root)
        bad_keys = good_keys - shift * W_Q
        foreign = torch.cat([good_keys[..., :-1], good_keys[..., -1:] + outside], dim=-1)
        cases = ((good_keys, True), (bad_keys, False), (foreign, False))
        tables = []
        for keys, expected in cases:
            is_psd = inertia(bilinear_form(W_Q, keys)).negative == 0
            tables.append(rows_of("tied", (is_psd != expected).long(), 0.5))
        return pd.concat(tables, ignore_index=True)

    def mixture(self, draw: torch.Generator, device: torch.device) -> pd.DataFrame:
        """Two indefinite levels whose mixture is psd, and z^T S z at the witness."""
        one = mixture_counterexample()
        S = mix([z @ M @ z.mT for z, M in zip(pyramid(one.X, 2), one.M, strict=True)], one.alpha)
        return rows_of("mixture", -(one.z @ S @ one.z).view(1), 1.0)


@dataclass(frozen=True, kw_only=True)
class RandomHeads(Experiment):
    """HKT-4: how often a random head with d_k = d has a psd form; rows: d, trials, successes."""

    trials: int = 200_000
    most: int = 4

    def conditions(self) -> list[dict]:
        return [{"d": d} for d in range(1, self.most + 1)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, draw = condition["d"], stream(seed, "lucky", condition["d"])
        W_Q, W_K = (normal((self.trials, d, d), draw).to(device) for _ in range(2))
        minors = [self._leading(bilinear_form(W_Q, W_K), m) for m in range(1, d + 1)]
        lucky = torch.stack(minors).gt(0).all(dim=0)
        return pd.DataFrame({"trials": [self.trials], "successes": [int(lucky.sum(dim=0))]})

    def _leading(self, M: Tensor, m: int) -> Tensor:
        """The leading principal minor of size m of sym(M): all positive iff positive definite (Sylvester)."""
        return torch.linalg.det(symmetric_antisymmetric(M).symmetric[:, :m, :m])


@dataclass(frozen=True, kw_only=True)
class Splits(Experiment):
    """HKT-5: S = S_s + S_a, level by level; log-ratios without a mask; what a causal mask leaves.

    Rows: check, instance, gap, bound. "unique": the T^2 equations P + N = S in all symmetric P and antisymmetric N have
    one solution, S_s and S_a. "split": difference of S_a between two tables with one causal attention, the gap of the
    two attentions standing under "output". "identified": ln A_ij / A_ii, with A from Y = A V alone, less S_ij - S_ii.
    """

    instances: int = 64
    T: int = 10
    d: int = 6
    levels: int = 3

    tiny: ClassVar = {"instances": 4}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        N, T, L, eps = self.instances, self.T, self.levels, torch.finfo(dtype).eps
        draw = stream(seed, "splits")
        layers = random_layers(N, self.d, 1, L, generator=draw, dtype=dtype, device=device)
        x = normal((N, T, self.d), draw).to(device, dtype)
        by_level = [each.detach().squeeze(1) for each in layers.scores.tables(x)]
        alpha = layers.scores.alpha().detach().squeeze(1)
        S = mix(by_level, alpha)
        S_s, S_a = symmetric_antisymmetric(S)
        largest, squares = worst_entry(S), S.square().sum(dim=(1, 2))
        both = S_s.square().sum(dim=(1, 2)) + S_a.square().sum(dim=(1, 2))
        levelwise = mix([symmetric_antisymmetric(each).antisymmetric for each in by_level], alpha)
        size = worst_entry(mix([each.abs() for each in by_level], alpha))
        log_A, z = torch.log(torch.softmax(S, dim=-1)), torch.logsumexp(S, dim=-1)
        ratio = log_A - log_A.mT - 2 * S_a + z.unsqueeze(-1) - z.unsqueeze(-2)
        product = log_A + log_A.mT - 2 * S_s + z.unsqueeze(-1) + z.unsqueeze(-2)
        # log A: roundings of S - max S, of exp, of a sum of T terms, of the logarithm; twice, and of 2 S and z
        logs = eps * (16 * largest + 4 * worst_entry(z) + 2 * T + 40)
        tables = [
            rows_of("sum", worst_entry(S_s + S_a - S), 2 * eps * largest),
            rows_of("unique", self._solved(S, S_s, S_a), 8 * eps * largest),  # in pairs of equations, few roundings
            rows_of("pythagoras", (squares - both).abs(), 2 * (T * T + 4) * eps * squares),
            rows_of("levels", worst_entry(levelwise - S_a), (L + 6) * eps * size),
            rows_of("ratio", worst_entry(ratio), logs),
            rows_of("product", worst_entry(product), logs),
        ]
        later = normal((N, T, T), draw).to(device, dtype).triu(1)
        A, A_too = (torch.softmax(causal_mask(each), dim=-1) for each in (S, S + later))
        V = normal((N, T, T - 1), draw).to(device, dtype)
        tables += [
            rows_of("output", worst_entry(A - A_too), torch.finfo(dtype).tiny),  # nothing but an exact zero passes
            rows_of("split", worst_entry(symmetric_antisymmetric(S + later).antisymmetric - S_a), 1.0),
            rows_of("identified", *self._identified(S * (REACH / largest).view(-1, 1, 1), V)),
        ]
        return pd.concat(tables, ignore_index=True)

    def _identified(self, S: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
        """How far ln A_ij / A_ii is from S_ij - S_ii, and A_ij from 0 for j > i, A from Y = A V and A 1 = 1; its bound.

        Householder's QR solves a system changed by 2 T^2 eps |W|_F (Higham 2002, theorem 19.5), W = [V 1]; the product
        Y has T eps |W|_F. Both move a row of A, of norm at most 1, by that times |W^-1|, and its logarithm by that over
        the entry. S itself, exp, the sum and the logarithms of the direct way: as for "ratio".
        """
        T, eps = self.T, torch.finfo(S.dtype).eps
        past = torch.ones(T, T, dtype=torch.bool, device=S.device).tril()
        Y, one = torch.softmax(causal_mask(S), dim=-1) @ V, torch.ones_like(S[..., :1])
        W, right = torch.cat([V, one], dim=-1), torch.cat([Y, one], dim=-1)
        Q, R = torch.linalg.qr(W.mT)  # A W = [Y 1]
        A = torch.linalg.solve_triangular(R, Q.mT @ right.mT, upper=True).mT
        least = torch.softmax(S, dim=-1).masked_fill(~past, 1.0).flatten(1).amin(dim=1)  # at most that of A
        moved = (2 * T * T + T) * eps * W.flatten(1).norm(dim=1) / torch.linalg.svdvals(W)[:, -1]
        log_ratio = A.log() - A.diagonal(dim1=1, dim2=2).log().unsqueeze(-1)
        gap = torch.where(
            past, log_ratio - S + S.diagonal(dim1=1, dim2=2).unsqueeze(-1), A
        )  # A = 0 where the mask holds
        return worst_entry(gap), 2 * moved / least + eps * (8 * REACH + 2 * T + 40)

    def _solved(self, S: Tensor, S_s: Tensor, S_a: Tensor) -> Tensor:
        """How far the solution of P + N = S is from the two parts, plus the equations' lack of rank: (instances,)."""
        i, j = torch.triu_indices(self.T, self.T, device=S.device)
        one = torch.zeros(len(i), self.T, self.T, dtype=S.dtype, device=S.device)
        one[torch.arange(len(i), device=S.device), i, j] = 1.0
        symmetric, antisymmetric = torch.maximum(one, one.mT), (one - one.mT)[i < j]  # a basis of either space
        equations = torch.cat([symmetric, antisymmetric]).flatten(1).mT
        P, N = torch.linalg.solve(equations, S.flatten(1).mT).mT.split([len(symmetric), len(antisymmetric)], dim=1)
        gaps = (torch.tensordot(P, symmetric, 1) - S_s, torch.tensordot(N, antisymmetric, 1) - S_a)
        lacking = len(equations) - torch.linalg.matrix_rank(equations)
        return torch.maximum(*(worst_entry(gap) for gap in gaps)) + lacking
