"""Training: which starts and optimisers find the whitening map, and when the loss cannot see it (OLS-9, OLS-10).

symbol    name          meaning                                              axes
X, Y      X, Y          tokens and responses                                 (*batch, n, p), (*batch, n, m)
L, l      L, l          whitening map W_Q = W_K = W_V, a number where p = 1  (*batch, p, d), (*batch,)
P         P             read-out                                             (*batch, d, m), (*batch,)
read_out  read_out      "frozen": P keeps its value; "recomputed": P = L^T X^T Y / n from the current L; "trained"
1/s       inverse_root  the weight that whitens                              (*batch,)

A batch axis holds data sets or initial values; every entry descends its own loss, as if it were alone.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor
from torch.linalg import matrix_norm as norm

from derived.lab import measure
from derived.lab.checks import check_choice, check_count, check_factored, check_one_dtype
from derived.lab.claims import at_least, reported, statistic, unseen
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, COLOURS, DASHED, MUTED, RED, THEORY, beside, largest, panel_label
from derived.lab.rng import stream

from .data.problems import paper_problem, random_regression, random_rotation
from .model import mechanism, reachability
from .model.checks import check_composable, check_matrix, check_rows
from .model.mechanism import whitening
from .model.reachability import READ_OUTS, ReadOut

Optimizer = Literal["gd", "adam"]
OPTIMIZERS = {"gd": torch.optim.SGD, "adam": torch.optim.Adam}
NEAR = 1e-3  # of the scalar weight to its limit
PREDICTED = 2e-3  # of the scalar weight to the predicted end point
FOUND, MISSED, FITTED = 1e-2, 0.1, 1e-4  # structure gaps; loss above least squares, relative
SMALLEST = 1e-17  # what a logarithmic axis shows in place of zero


def _descent(parameters: list[Tensor], optimizer: Optimizer, lr: float, epochs: int) -> torch.optim.Optimizer:
    """Full-batch descent at a constant rate; its caller sets the gradients."""
    check_choice("optimizer", optimizer, OPTIMIZERS)
    check_count("epochs", epochs)
    return OPTIMIZERS[optimizer](parameters, lr)


class MatrixTraining(NamedTuple):
    """The weights after training, and the loss on the way: index t stands before epoch t, the last one at the end."""

    L: Tensor  # (*batch, p, d)
    P: Tensor  # (*batch, d, m)
    loss: Tensor  # (epochs + 1, *batch), mean squared error ||LA(X) P - Y||_F^2 / n


def train_matrix(
    X: Float[Tensor, "*batch n p"],
    Y: Float[Tensor, "*batch n m"],
    L0: Float[Tensor, "*batch p d"],
    P0: Float[Tensor, "*batch d m"] | None = None,
    *,
    read_out: ReadOut = "recomputed",
    optimizer: Optimizer = "adam",
    lr: float = 1e-2,
    epochs: int = 1000,
) -> MatrixTraining:
    """Full-batch training of the tied layer LA(X) P on ||LA(X) P - Y||_F^2 / n, for all batch entries at once.

    Tokens and responses enter only through their second moments, so p + m tokens stand for n; the equality with the
    layer on all of its tokens is a test. ``read_out`` says what P is: "frozen" at P0, or if P0 is not given at its
    theoretical value for L = whitening(X); "recomputed" from the current L; "trained" from P0. Raises ValueError for
    unfitting shapes, NaN, "trained" without P0 and "recomputed" with one. [digest: one scalar L, P computed from the
    data; the other cases ours]

    >>> X, Y = torch.tensor([[1.0], [-1.0], [2.0]]), torch.tensor([[2.0], [-1.0], [3.0]])
    >>> trained = train_matrix(X, Y, torch.ones(1, 1), lr=0.05, epochs=200)
    >>> trained.L, whitening(X)
    (tensor([[0.7071]]), tensor([[0.7071]]))
    """
    check_matrix("X", X)
    check_matrix("Y", Y)
    check_matrix("L0", L0)
    check_one_dtype(Y=Y, L0=L0, X=X)
    check_factored(X=X)
    X, Y = X.detach(), Y.detach()
    check_rows("X", X, "Y", Y)
    check_composable("X", X, "L0", L0)
    check_choice("read_out", read_out, READ_OUTS)
    if (read_out == "trained" and P0 is None) or (read_out == "recomputed" and P0 is not None):
        raise ValueError(
            f"read_out = {read_out!r} with P0 {'missing' if P0 is None else 'given'}; "
            "'trained' needs P0, 'recomputed' computes P itself"
        )
    if read_out == "frozen" and P0 is None:
        P0 = mechanism.read_out(X, Y, whitening(X))
    if P0 is not None:
        check_matrix("P0", P0)
        check_one_dtype(P0=P0, X=X)
        if P0.shape[-2:] != (L0.shape[-1], Y.shape[-1]):
            raise ValueError(f"P0 has shape {tuple(P0.shape)}; L0 and Y need ({L0.shape[-1]}, {Y.shape[-1]})")
    batch = torch.broadcast_shapes(X.shape[:-2], L0.shape[:-2])
    L = L0.detach().expand(*batch, *L0.shape[-2:]).clone()
    P = None if P0 is None else P0.detach().expand(*batch, *P0.shape[-2:]).clone()
    descent = _descent([L, P] if read_out == "trained" else [L], optimizer, lr, epochs)
    (X, Y), course = _few_tokens(X, Y), []
    n = X.shape[-2]
    for epoch in range(epochs + 1):
        tokens = X @ L
        state = tokens.mT @ tokens
        attended, read = tokens @ state / n, tokens.mT @ Y / n if P is None else P
        error = attended @ read - Y
        course.append(error.square().sum(dim=(-2, -1)) / n)
        if epoch == epochs:
            break
        pull = 1 / n * (2 * error)  # the slope of the loss in its prediction; then in P, in what attention sums, in L
        of_read, of_sum = attended.mT @ pull, pull @ read.mT / n
        of_state, of_tokens = tokens.mT @ of_sum, of_sum @ state.mT
        if P is None:
            of_tokens += (of_read / n @ Y.mT).mT
        else:
            P.grad = of_read
        L.grad = X.mT @ (of_tokens + tokens @ of_state + (of_state @ tokens.mT).mT)
        descent.step()
    return MatrixTraining(L, mechanism.read_out(X, Y, L) if P is None else P, torch.stack(course))


def _few_tokens(
    X: Float[Tensor, "*batch n p"], Y: Float[Tensor, "*batch n m"]
) -> tuple[Float[Tensor, "*batch k p"], Float[Tensor, "*batch k m"]]:
    """At most p + m tokens with the same mean squares and products: of [X Y] = QR the rows of sqrt(k/n) R. [ours]"""
    batch = torch.broadcast_shapes(X.shape[:-2], Y.shape[:-2])
    both = torch.cat([each.expand(*batch, *each.shape[-2:]) for each in (X, Y)], dim=-1)
    R = torch.linalg.qr(both, mode="r").R
    R = R * (R.shape[-2] / X.shape[-2]) ** 0.5
    return R[..., : X.shape[-1]], R[..., X.shape[-1] :]


def structure_gap(X: Float[Tensor, "*batch n p"], L: Float[Tensor, "*batch p d"]) -> Float[Tensor, "*batch"]:
    """||L^T Sigma L - I||_F / sqrt(d): L L^T is the inverse of Sigma iff it is 0 (for d = p). [ours]"""
    tokens = X @ L
    gram = tokens.mT @ tokens / X.shape[-2]
    return norm(gram - torch.eye(L.shape[-1], dtype=L.dtype, device=L.device)) / L.shape[-1] ** 0.5


class ScalarTraining(NamedTuple):
    """The course of a scalar layer; index t is the state before epoch t, the last one the end."""

    l: Tensor  # (epochs + 1, *batch)
    P: Tensor  # (epochs + 1, *batch)
    loss: Tensor  # (epochs + 1, *batch), mean squared error


def train_scalar(
    x: Float[Tensor, "*batch n"],
    y: Float[Tensor, "*batch n"],
    l0: Float[Tensor, "*batch"],
    P0: Float[Tensor, "*batch"] | None = None,
    *,
    read_out: ReadOut = "recomputed",
    optimizer: Optimizer = "adam",
    lr: float = 1e-2,
    epochs: int = 1000,
) -> ScalarTraining:
    """The paper's experiment: one scalar L, prediction x l^3 s^2 P, trained on the mean squared error.

    The tokens enter only through s^2 = mean x^2 and the slope beta, loss = s^2 (l^3 s^2 P - beta)^2 + residual, so an
    epoch costs O(batch); the equality with the layer itself is a test. ``read_out`` as in ``train_matrix``; a frozen P
    is s beta. Shapes: x, y (*batch, n), l0 and P0 broadcast against (*batch,). Raises
    ValueError for unfitting shapes, NaN, x = 0, and "trained" without P0 or another with one. [digest; s and beta ours]

    >>> x, y = torch.tensor([1.0, -1.0, 2.0]), torch.tensor([2.0, -1.0, 3.0])  # s^2 = 2
    >>> course = train_scalar(x, y, torch.tensor([1.0, -1.0]), lr=0.05, epochs=200)
    >>> course.l[-1]  # 1/s and, from a negative start, -1/s
    tensor([ 0.7071, -0.7071])
    """
    check_matrix("x", x.unsqueeze(-1) if x.ndim else x)
    check_matrix("y", y.unsqueeze(-1) if y.ndim else y)
    for name, given in (("y", y), ("l0", l0), *([] if P0 is None else [("P0", P0)])):
        check_one_dtype(**{name: given, "x": x})
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"x has {x.shape[-1]} tokens and y has {y.shape[-1]}; give one response per token")
    check_choice("read_out", read_out, READ_OUTS)
    if (P0 is None) != (read_out != "trained"):
        raise ValueError(f"read_out = {read_out!r}; give 'frozen' or 'recomputed' without P0, or 'trained' with P0")
    x, y = x.detach(), y.detach()
    square = x.square().mean(dim=-1)
    if not bool((square > 0).all()):
        raise ValueError("x is zero, so it has no slope; give inputs with at least one nonzero entry")
    slope = (x * y).mean(dim=-1) / square
    residual = (y - slope.unsqueeze(-1) * x).square().mean(dim=-1)
    batch = torch.broadcast_shapes(square.shape, l0.shape, () if P0 is None else P0.shape)
    l, P = (each.expand(batch).clone() for each in (l0.detach(), square.sqrt() * slope if P0 is None else P0.detach()))
    descent = _descent([l, P] if read_out == "trained" else [l], optimizer, lr, epochs)
    course = ScalarTraining(*(x.new_empty(epochs + 1, *batch) for _ in range(3)))
    for epoch in range(epochs + 1):
        gain, read = l**3 * square, l * square * slope if read_out == "recomputed" else P
        error = gain * read - slope
        course.l[epoch], course.P[epoch], course.loss[epoch] = l, read, square * error**2 + residual
        pull = square * (2 * error)  # the slope of the loss in gain * read
        l.grad, P.grad = pull * read * square * (3 * l**2), pull * gain
        if read_out == "recomputed":
            l.grad += P.grad * slope * square
        descent.step()
    return course


# Experiments ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Reachability(Experiment):
    """OLS-9: the paper's toy, y = 2x + noise with n = 500, trained for 1000 epochs from several L_0.

    Rows: replicate, l0, the end point and the values 1/s, s, beta that theory gives. A seed of a row is its replicate.
    """

    starts: tuple[float, ...] = (0.1, 0.5, 1.5, 2.0, -0.2, -0.5)
    n: int = 500
    epochs: int = 1000
    adam_lr: float = 1e-2
    gd_lr: float = 5e-3
    replicates: int = 100

    def conditions(self) -> list[dict]:
        read_outs = ("frozen", "recomputed", "trained")
        return [{"read_out": read, "optimizer": name} for name in ("adam", "gd") for read in read_outs]

    def train(self, condition, seed: int, dtype: torch.dtype):
        """The course of every replicate from every start; axes (epochs + 1, replicates, starts)."""
        problem = paper_problem(self.n, batch=(self.replicates, 1), generator=stream(seed, "toy"), dtype=dtype)
        x, y = problem.X.squeeze(-1), problem.Y.squeeze(-1)
        l0 = torch.tensor(self.starts, dtype=dtype)
        course = train_scalar(
            x,
            y,
            l0,
            torch.ones_like(l0) if condition["read_out"] == "trained" else None,
            read_out=condition["read_out"],
            optimizer=condition["optimizer"],
            lr=self.adam_lr if condition["optimizer"] == "adam" else self.gd_lr,
            epochs=self.epochs,
        )
        square = x.square().mean(dim=-1)
        return course, square.sqrt(), (x * y).mean(dim=-1) / square

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        course, s, beta = self.train(condition, seed, dtype)
        l_end = course.l[-1].where(course.l[-1].isfinite(), torch.inf)  # a run that diverged, not one without a number
        end = {"l": l_end, "P": course.P[-1], "loss": course.loss[-1]}
        theory = {"inverse_root": 1 / s, "s": s, "beta": beta}
        return rows({"replicate": range(self.replicates), "l0": self.starts}, end | theory)


@dataclass(frozen=True, kw_only=True)
class Courses(Reachability):
    """The figure of end points: l and P over the epochs of the first replicate, both trained by small steps."""

    starts: tuple[float, ...] = (0.1, 0.5, 1.5, -0.5)
    replicates: int = 1
    every: int = 5

    def conditions(self) -> list[dict]:
        return [{"read_out": "trained", "optimizer": "gd"}]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        course, s, beta = self.train(condition, seed, dtype)
        index = {"epoch": range(0, self.epochs + 1, self.every), "l0": self.starts}
        shown = {"l": course.l[:: self.every, 0], "P": course.P[:: self.every, 0]}
        return rows(index, shown | {"inverse_root": float(1 / s), "s": float(s), "beta": float(beta)})


@dataclass(frozen=True, kw_only=True)
class TrainedEndPoint(Experiment):
    """OLS-10.c: l and P both trained by small gradient steps, against the end point that l^2 - 3 P^2 predicts.

    The last three starts miss the condition of `ols-end-point`: they are predicted to stall at l = 0. ``excess`` is
    the loss above least squares, over that of l = 0.
    """

    starts: tuple[tuple[float, float], ...] = (
        *((0.5, 0.5), (0.5, 1.0), (1.5, 1.0), (-0.5, -1.0), (1.2, -0.3)),
        *((0.5, -0.5), (0.5, -1.0), (-0.5, 0.5)),
    )
    n: int = 500
    lr: float = 5e-4
    epochs: int = 8000
    replicates: int = 100

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        problem = paper_problem(self.n, batch=(self.replicates, 1), generator=stream(seed, "toy"), dtype=dtype)
        x, y = problem.X.squeeze(-1), problem.Y.squeeze(-1)
        l0, P0 = torch.tensor(self.starts, dtype=dtype).unbind(dim=-1)
        course = train_scalar(x, y, l0, P0, read_out="trained", optimizer="gd", lr=self.lr, epochs=self.epochs)
        square = x.square().mean(dim=-1)
        s, beta = square.sqrt(), (x * y).mean(dim=-1) / square
        predicted, _ = reachability.predicted_end_point(l0, P0, s, beta)
        slope = reachability.prediction_slope(course.l[-1], course.P[-1], s, beta, "trained")
        index = {"replicate": range(self.replicates), ("l0", "P0"): (l0, P0)}
        ends = {"l": course.l[-1], "predicted": predicted, "excess": (slope / beta.numpy() - 1) ** 2}
        return rows(index, ends | {"arrives": predicted != 0, "inverse_root": 1 / s})


@dataclass(frozen=True, kw_only=True)
class Structure(Experiment):
    """OLS-10.f: does training the whole matrix L find the whitening map? Only if rank B = p."""

    sizes: tuple[tuple[int, int], ...] = ((2, 1), (3, 1), (3, 2), (2, 2))
    n: int = 100
    epochs: int = 1500
    lr: float = 1e-2
    replicates: int = 64

    def conditions(self) -> list[dict]:
        return [{"p": p, "m": m} for p, m in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        p, m = condition["p"], condition["m"]
        generator = stream(seed, "structure", p, m)
        X, _, B = random_regression(self.n, p, m, kappa=2.0, batch=(self.replicates,), generator=generator, dtype=dtype)
        L0 = 0.5 * random_rotation(p, batch=(self.replicates,), generator=generator, dtype=dtype)
        Y = X @ B  # no noise: the least-squares loss is zero
        trained = train_matrix(X, Y, L0, lr=self.lr, epochs=self.epochs)
        relative = trained.loss[-1] / (Y.square().sum(dim=(-2, -1)) / self.n)
        untrained = trained.loss[0] / (Y.square().sum(dim=(-2, -1)) / self.n)
        columns = {"rank": min(p, m), "relative_loss": relative, "structure_gap": structure_gap(X, trained.L)}
        columns |= {"untrained_loss": untrained, "untrained_gap": structure_gap(X, L0)}
        return rows({"replicate": range(self.replicates)}, columns)


EXPERIMENTS = (Reachability, TrainedEndPoint, Structure, Courses)

# Claims ---------------------------------------------------------------------------------------------------------------

ALL_STARTS = "l0 > 0 and read_out != 'trained'"
RUNS = "share of data sets all of whose runs end with"
SHAPE = ("p", "m", "replicate")  # each shape draws its own data
STRUCTURE = r"$\|L^\top\Sigma L-I\|_F/\sqrt p"

CLAIMS = (
    reported(
        "OLS-9",
        r"On $y=2x+\varepsilon$ with $n=500$ tokens and $P$ computed from the data, training brings the scalar weight "
        r"$L$ to $1/s$ within 1000 epochs: from some starts, by some optimisers.",
        Reachability,
        measure.mean(f"1.0 * (abs(l - inverse_root) < {NEAR})", ALL_STARTS, unit=["replicate"]),
        "share of runs",
        criterion=rf"share of runs with $|L-1/s|<{NEAR:g}$ over Adam and gradient descent, $P$ frozen or recomputed, "
        r"and $L_0\in\{0.1,0.5,1.5,2\}$; nothing passes or fails",
        source="digest",
        where="experiment; the paper's optimiser and starts could not be seen, and the end depends on both",
        plain="Training brings the toy layer to its theoretical weight within 1000 epochs.",
        paper_value="yes",
    ),
    statistic(
        "OLS-10.c",
        r"With $L$ and $P$ both trained from a start with $L_0P_0\hat b>0$ or $L_0^2>3P_0^2$, gradient descent in "
        r"small steps on the scalar layer ends where $L^3P=\hat b/s^2$ meets $L^2-3P^2=L_0^2-3P_0^2$.",
        TrainedEndPoint,
        measure.share(f"abs(l - predicted) < {PREDICTED}", "arrives"),
        rf"{RUNS} $L$ less than ${PREDICTED:g}$ from its predicted value",
        at_least(0.9),
        control=measure.share(f"abs(l0 - predicted) < {PREDICTED}", "arrives"),  # the start itself
        unit="share of data sets",
        horizon="8,000 epochs",
    ),
    statistic(
        "OLS-10.f",
        r"If $\operatorname{rank}\hat B<p$, at least eight in ten trainings of the matrix $L$ by Adam at the rate "
        r"$10^{-2}$, without noise, fit the data and miss the structure $LL^\top=\Sigma^{-1}$.",
        Structure,
        measure.share(f"relative_loss < {FITTED} and structure_gap > {MISSED}", "rank < p", unit=SHAPE),
        rf"share of runs (three shapes, each run with data of its own) that end with a relative loss below "
        rf"${FITTED:g}$ and {STRUCTURE}>{MISSED:g}$",
        at_least(0.8),
        control=measure.share(f"untrained_loss < {FITTED} and untrained_gap > {MISSED}", "rank < p", unit=SHAPE),
        where="the paper's toy, from a summary, has $p=1$ and cannot see it",
        unit="share of runs",
    ),
    unseen(
        "OLS-18",
        "The published curves of the paper's experiment come out again, number by number.",
        "neither curves nor tables of the paper could be seen; OLS-9 reruns its experiment as a summary describes it",
        source="paper",
        where="not visible",
        plain="The curves of the paper's own experiment come out again.",
        paper_value="not visible",
    ),
)

# Table and figures ----------------------------------------------------------------------------------------------------


def ends(rows: pd.DataFrame) -> pd.DataFrame:
    """The table of OLS-9: shares of data sets by the end of training, a line an optimiser and read-out and start.

    An end counts within 1e-3 of 1/s or of -1/s, or within a tenth of 1/s of the saddle at 0.
    """
    root, l = rows["inverse_root"], rows["l"]
    reached = {"1/s": (l - root).abs() < NEAR, "−1/s": (l + root).abs() < NEAR, "0": l.abs() < 0.1 * root}
    table = rows[["optimizer", "read_out", "l0"]].replace({"adam": "Adam", "gd": "descent"})
    table = table.assign(**reached, elsewhere=~np.logical_or.reduce(list(reached.values())))
    by = table[table["read_out"] != "trained"].groupby(["optimizer", "read_out", "l0"])
    return by.mean()


def start_by_end(rows: pd.DataFrame) -> pd.DataFrame:
    """``ends`` with starts across, each cell in words: the ends of one data set in twenty or more, with shares."""
    shares = ends(rows)

    def words(row: pd.Series) -> str:
        some = row[row >= 0.05].sort_values(ascending=False)
        return ", ".join(name if share > 0.995 else f"{name} {share:.0%}" for name, share in some.items())

    table = shares.apply(words, axis="columns").unstack("l0")
    return table.rename(columns=lambda l0: f"from {l0:g}").rename_axis(index=[None, None], columns=None)


def end_points(rows: pd.DataFrame) -> Figure:
    """Courses in the plane of both trained numbers: hyperbolas that meet the curve of zero loss; ``Courses``."""
    rows = rows[~rows["recorded"]]
    s, beta = float(rows["s"].iloc[0]), float(rows["beta"].iloc[0])
    figure, ax = plt.subplots(figsize=(5.4, 3.8))
    reach = 1.15 * max(1.6, float(rows["l"].abs().max()))
    curve, l = np.linspace(0.35, reach, 200), np.linspace(-reach, reach, 801)
    ax.plot(curve, beta / (s**2 * curve**3), **THEORY | {"linewidth": 1.6})
    ends = []
    for (l0, course), color in zip(rows.groupby("l0"), COLOURS, strict=False):
        course = course.sort_values("epoch")
        P0 = float(course["P"].iloc[0])
        square = (l**2 - l0**2) / 3 + P0**2
        branch = np.where(square >= 0, np.sqrt(np.maximum(square, 0)), np.nan)
        ax.plot(l, branch, color=color, linewidth=0.8, linestyle=":")
        ax.plot(course["l"], course["P"], color=color, linewidth=2.2)
        ax.plot(l0, P0, "o", color=color, markerfacecolor="none")
        ax.plot(course["l"].iloc[-1], course["P"].iloc[-1], "o", color=color)
        ends.append(f"from {l0:g} to {course['l'].iloc[-1]:.3f}")
    ax.axvline(1 / s, color=MUTED, linewidth=0.9, linestyle="--")
    ax.set(xlabel="weight $l$", ylabel="read-out $P$", xlim=(-reach, reach), ylim=(0, 2.6))
    beside(ax, 1 / s, 0.12, "$1/s$", MUTED)
    top = 2.3
    beside(ax, (beta / (s**2 * top)) ** (1 / 3), top, r"zero loss: $l^3P=\hat b/s^2$", shift=(-8, 0), ha="right")
    panel_label(ax, "Starts that arrive end at different weights, with one fit")
    figure.set_label(
        f"The plane of weight and read-out. Each course follows its hyperbola, {', '.join(ends)}; 1/s is {1 / s:.3f}."
    )
    return figure


def structure(rows: pd.DataFrame) -> Figure:
    """How far the trained map is from whitening, a point a run, by rank; rows of ``Structure``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(5.5, 3.0))
    said = []
    for height, full, color, words in ((1, True, BLUE, r"rank $\hat B=p$"), (0, False, RED, r"rank $\hat B<p$")):
        part = rows[(rows["rank"] == rows["p"]) == full]
        gap, fitted = part["structure_gap"], part["relative_loss"] < FITTED
        place = height + 0.24 * np.sin(2.4 * np.arange(len(part)))
        ax.plot(gap.clip(lower=SMALLEST), place, ".", color=color, markersize=5, alpha=0.6)
        found = f"{fitted.sum()} of {len(part)} fit, {(gap < FOUND).sum()} found the map"
        ax.annotate(f"{words}: {found}", (0.02, height + 0.34), xycoords=("axes fraction", "data"), color=color)
        said.append(f"with rank B {'=' if full else '<'} p {found}, median gap {gap.median():.1e}")
    ax.axvline(FOUND, **DASHED)
    beside(ax, FOUND, -0.45, "← counts as found", MUTED, (-5, 0), ha="right")
    ax.set(xscale="log", xlim=(SMALLEST / 3, 10), ylim=(-0.6, 1.6), yticks=[], ylabel="runs")
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("gap of the trained map $L$ from whitening")
    panel_label(ax, "A good fit identifies the map only at full rank")
    figure.set_label(f"Structure gap of {len(rows)} runs: {'; '.join(said)}.")
    return figure
