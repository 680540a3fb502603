"""Training: does gradient descent find the least-squares weights, and what does it find on random tasks?

symbol    name          meaning                                              axes
X, Y      X, Y          tokens and responses                                 (*batch, n, p), (*batch, n, m)
L         L             whitening map, W_Q = W_K = W_V = L                   (*batch, p, d)
P         P             read-out                                             (*batch, d, m)
read_out  read_out      "frozen": P keeps its value; "recomputed": P = L^T X^T Y / n from the current L; "trained"
eta       lr            step size, a number or one per batch entry           scalar or (*batch,)
Gamma     Gamma         in-context predictor x~^T Gamma (1/N) sum_i x_i y_i  (*batch, p, p)

A batch axis holds seeds, initial values or step sizes: the losses are summed over it, so that every entry descends its
own loss, as if it were alone.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from .checks import check_composable, check_count, check_matrix, check_rows
from .data import Tasks, random_tasks
from .mechanism import linear_attention, whitening
from .mechanism import read_out as read_out_matrix
from .reachability import ReadOut
from .theory import check_covariance

Optimizer = Literal["gd", "adam"]
ADAM_BETAS, ADAM_EPS = (0.9, 0.999), 1e-8  # the defaults of torch.optim.Adam


def descend(
    parameters: tuple[Tensor, ...],
    loss: Callable[..., Tensor],
    *,
    steps: int,
    lr: float | Tensor,
    optimizer: Optimizer,
    observe: Callable[[int, tuple[Tensor, ...], Tensor], None],
    decay: bool = False,
) -> tuple[Tensor, ...]:
    """The parameters after ``steps`` of gradient descent or Adam on ``loss(step, *parameters)``, one loss per entry.

    ``observe(step, parameters, loss)`` sees every step before its update. ``lr`` broadcasts against the batch axes of
    the loss; ``decay`` lowers it linearly to zero. Adam acts on each number alone, with the defaults of torch.
    """
    check_count("steps", steps)
    if optimizer not in ("gd", "adam"):
        raise ValueError(f"optimizer = {optimizer!r}; give 'gd' or 'adam'")
    parameters = tuple(parameter.detach().clone().requires_grad_() for parameter in parameters)
    moments = [(torch.zeros_like(parameter), torch.zeros_like(parameter)) for parameter in parameters]
    for step in range(steps):
        losses = loss(step, *parameters)
        gradients = torch.autograd.grad(losses.sum(), parameters)
        with torch.no_grad():
            observe(step, parameters, losses)
            rate = torch.as_tensor(lr, dtype=losses.dtype) * ((1 - step / steps) if decay else 1.0)
            for parameter, gradient, (first, second) in zip(parameters, gradients, moments, strict=True):
                if optimizer == "adam":
                    first.lerp_(gradient, 1 - ADAM_BETAS[0])
                    second.lerp_(gradient.square(), 1 - ADAM_BETAS[1])
                    unbiased = second / (1 - ADAM_BETAS[1] ** (step + 1))
                    gradient = first / (1 - ADAM_BETAS[0] ** (step + 1)) / (unbiased.sqrt() + ADAM_EPS)
                parameter -= rate.reshape(rate.shape + (1,) * (parameter.ndim - rate.ndim)) * gradient
    return tuple(parameter.detach() for parameter in parameters)


class MatrixTraining(NamedTuple):
    """The weights after training and their course: index t is the state before epoch t, the last one the end."""

    L: Tensor  # (*batch, p, d)
    P: Tensor  # (*batch, d, m)
    loss: Tensor  # (epochs + 1, *batch), mean squared error ||LA(X) P - Y||_F^2 / n
    structure_gap: Tensor  # (epochs + 1, *batch), ||L^T Sigma L - I||_F over sqrt(d); the inverse is found iff it is 0


def _forward(X: Tensor, Y: Tensor, L: Tensor, P: Tensor | None) -> Tensor:
    """LA(X) P with tied weights L, P = L^T X^T Y / n if it is None."""
    tokens = X @ L
    return linear_attention(tokens, tokens, tokens) @ (tokens.mT @ Y / X.shape[-2] if P is None else P)


def train_matrix(
    X: Float[Tensor, "*batch n p"],
    Y: Float[Tensor, "*batch n m"],
    L0: Float[Tensor, "*batch p d"],
    P0: Float[Tensor, "*batch d m"] | None = None,
    *,
    read_out: ReadOut = "recomputed",
    optimizer: Optimizer = "adam",
    lr: float | Tensor = 1e-2,
    epochs: int = 1000,
) -> MatrixTraining:
    """Full-batch training of the tied layer LA(X) P on ||LA(X) P - Y||_F^2 / n, for all batch entries at once.

    ``read_out`` says what P is: "frozen" at P0, or if P0 is not given at its theoretical value for L = whitening(X);
    "recomputed" from the current L; "trained" from P0. Raises ValueError for unfitting shapes, NaN, "trained"
    without P0 and "recomputed" with one. [digest: one scalar L, P computed from the data; the other cases ours]
    """
    check_matrix("X", X)
    check_matrix("Y", Y)
    check_matrix("L0", L0)
    check_rows("X", X, "Y", Y)
    check_composable("X", X, "L0", L0)
    if read_out not in ("frozen", "recomputed", "trained"):
        raise ValueError(f"read_out = {read_out!r}; give 'frozen', 'recomputed' or 'trained'")
    if (read_out == "trained" and P0 is None) or (read_out == "recomputed" and P0 is not None):
        raise ValueError(
            f"read_out = {read_out!r} with P0 {'missing' if P0 is None else 'given'}; "
            "'trained' needs P0, 'recomputed' computes P itself"
        )
    if read_out == "frozen" and P0 is None:
        P0 = read_out_matrix(X, Y, whitening(X))
    if P0 is not None:
        check_matrix("P0", P0)
        if P0.shape[-2:] != (L0.shape[-1], Y.shape[-1]):
            raise ValueError(f"P0 has shape {tuple(P0.shape)}; L0 and Y need ({L0.shape[-1]}, {Y.shape[-1]})")
    batch = torch.broadcast_shapes(X.shape[:-2], L0.shape[:-2])
    L0 = L0.expand(*batch, *L0.shape[-2:])
    identity = torch.eye(L0.shape[-1], dtype=L0.dtype)
    course, gaps = [], []

    def loss(step: int, L: Tensor, *P: Tensor) -> Tensor:
        error = _forward(X, Y, L, P[0] if P else (P0 if read_out == "frozen" else None)) - Y
        return error.square().sum(dim=(-2, -1)) / X.shape[-2]

    def observe(step: int, parameters: tuple[Tensor, ...], losses: Tensor) -> None:
        tokens = X @ parameters[0]
        gram = tokens.mT @ tokens / X.shape[-2]
        gaps.append(torch.linalg.matrix_norm(gram - identity) / len(identity) ** 0.5)
        course.append(losses.detach())

    start = (L0, P0.expand(*batch, *P0.shape[-2:])) if read_out == "trained" else (L0,)
    end = descend(start, loss, steps=epochs, lr=lr, optimizer=optimizer, observe=observe)
    observe(epochs, end, loss(epochs, *end))
    L = end[0]
    P = end[1] if len(end) > 1 else (read_out_matrix(X, Y, L) if P0 is None else P0)
    return MatrixTraining(L, P, torch.stack(course), torch.stack(gaps))


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
    lr: float | Tensor = 1e-2,
    epochs: int = 1000,
) -> ScalarTraining:
    """The paper's experiment: one scalar L, prediction x l^3 s^2 P, trained on the mean squared error (R10).

    The tokens enter only through s^2 = mean x^2 and the slope beta, loss = s^2 (l^3 s^2 P - beta)^2 + residual, so an
    epoch costs O(batch); the equality with the layer itself is a test. ``read_out`` as in ``train_matrix``; a frozen P
    is s beta. Shapes: x, y (*batch, n), l0 and P0 broadcast against (*batch,). [digest; s and beta ours]
    """
    check_matrix("x", x.unsqueeze(-1) if x.ndim else x)
    check_matrix("y", y.unsqueeze(-1) if y.ndim else y)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"x has {x.shape[-1]} tokens and y has {y.shape[-1]}; give one response per token")
    if read_out not in ("frozen", "recomputed", "trained") or (P0 is None) != (read_out != "trained"):
        raise ValueError(f"read_out = {read_out!r}; give 'frozen' or 'recomputed' without P0, or 'trained' with P0")
    square = x.square().mean(dim=-1)
    if not bool((square > 0).all()):
        raise ValueError("x is zero, so it has no slope; give inputs with at least one nonzero entry")
    slope = (x * y).mean(dim=-1) / square
    residual = (y - slope.unsqueeze(-1) * x).square().mean(dim=-1)
    batch = torch.broadcast_shapes(square.shape, l0.shape, () if P0 is None else P0.shape)
    frozen = (square.sqrt() * slope).expand(batch)
    course: list[tuple[Tensor, Tensor, Tensor]] = []

    def current_P(l: Tensor, P: tuple[Tensor, ...]) -> Tensor:
        return P[0] if P else (frozen if read_out == "frozen" else l * square * slope)

    def loss(step: int, l: Tensor, *P: Tensor) -> Tensor:
        return square * (l**3 * square * current_P(l, P) - slope) ** 2 + residual

    def observe(step: int, parameters: tuple[Tensor, ...], losses: Tensor) -> None:
        l, *P = (parameter.detach().clone() for parameter in parameters)
        course.append((l, current_P(l, tuple(P)), losses.detach()))

    start = (l0.expand(batch),) if P0 is None else (l0.expand(batch), P0.expand(batch))
    end = descend(start, loss, steps=epochs, lr=lr, optimizer=optimizer, observe=observe)
    observe(epochs, end, loss(epochs, *end))
    return ScalarTraining(*(torch.stack(column) for column in zip(*course, strict=True)))


def context_moment(tasks: Tasks) -> Float[Tensor, "*batch p"]:
    """(1/N) sum_i x_i y_i, all that the best fixed layer reads of its context."""
    return (tasks.X.mT @ tasks.y.unsqueeze(-1)).squeeze(-1) / tasks.X.shape[-2]


def regress_linear_attention(tasks: Tasks) -> Float[Tensor, "*batch p p"]:
    """The Gamma that fits y~ = x~^T Gamma (1/N) sum_i x_i y_i best over a set of tasks: least squares in p^2 unknowns.

    Shapes: the last batch axis of ``tasks`` is the set, earlier ones are independent sets. Raises ValueError for fewer
    than p^2 tasks. [ours]
    """
    p = tasks.X.shape[-1]
    if tasks.X.ndim < 3 or tasks.X.shape[-3] < p * p:
        raise ValueError(f"tasks of shape {tuple(tasks.X.shape)} leave Gamma undetermined; give at least {p * p} tasks")
    features = (tasks.x_query.unsqueeze(-1) * context_moment(tasks).unsqueeze(-2)).flatten(-2)
    return torch.linalg.lstsq(features, tasks.y_query.unsqueeze(-1)).solution.unflatten(-2, (p, p)).squeeze(-1)


class LinearAttentionTraining(NamedTuple):
    """A linear-attention layer trained on random tasks."""

    Gamma: Tensor  # (*batch, p, p), the part of the layer that multiplies (1/N) sum_i x_i y_i
    rest: Tensor  # (*batch,), norm of its other coefficients over that of Gamma; 0 at the optimum
    steps: Tensor  # (points,)
    loss: Tensor  # (points, *batch), mean over the tasks since the previous point


def train_linear_attention(
    Lambda: Float[Tensor, "p p"],
    N: int,
    *,
    noise: float = 0.0,
    num_tasks: int = 64,
    steps: int = 50_000,
    lr: float = 1e-2,
    start: Literal["random", "aligned"] = "random",
    batch: tuple[int, ...] = (),
    points: int = 100,
    generator: torch.Generator,
) -> LinearAttentionTraining:
    """Train v^T G W x~ on fresh random tasks with Adam, step size falling linearly to zero (R4, OLS-12).

    Tokens are z_i = (x_i, y_i) and the query is (x~, 0); linear attention over the context returns
    (W_V-row v)^T (1/N sum_i z_i z_i^T) W x~ in the label's slot, with v in R^{p+1}, W in R^{(p+1) x p}. Of its
    coefficients only Gamma^T = v_y W_x + v_x W_y can help: the others multiply quadratic statistics of x or of y.
    ``batch`` holds independent runs, each with its own tasks and initial values. An "aligned" start has v_x = 0 and
    W_y = 0, which the exact gradient keeps and sampling noise does not. Away from it v can turn towards the leading
    axis of x: a local minimum, in which v_x W_y serves this axis and v_y W_x the others.
    [prior: Ahn et al. 2023; von Oswald et al. 2023; the aligned start: Zhang, Frei and Bartlett 2024]
    """
    if start not in ("random", "aligned"):
        raise ValueError(f"start = {start!r}; give 'random' or 'aligned'")
    check_covariance(Lambda)
    for name, value in (("N", N), ("num_tasks", num_tasks), ("steps", steps), ("points", points)):
        check_count(name, value)
    p = len(Lambda)
    scale = (p + 1) ** -0.5
    v0 = torch.randn(*batch, p + 1, generator=generator, dtype=Lambda.dtype) * scale
    W0 = torch.randn(*batch, p + 1, p, generator=generator, dtype=Lambda.dtype) * scale
    if start == "aligned":
        v0[..., :p], W0[..., p, :] = 0.0, 0.0
    every = max(1, steps // points)
    window, seen = torch.zeros(batch, dtype=Lambda.dtype), []

    def loss(step: int, v: Tensor, W: Tensor) -> Tensor:
        tasks = random_tasks(Lambda, N, batch=(*batch, num_tasks), noise=noise, generator=generator)
        z = torch.cat([tasks.X, tasks.y.unsqueeze(-1)], dim=-1)
        q = torch.einsum("...jp,...tp->...tj", W, tasks.x_query).unsqueeze(-2)
        values = torch.einsum("...j,...tnj->...tn", v, z).unsqueeze(-1)
        predicted = linear_attention(q, z, values).squeeze(-1).squeeze(-1)
        return (predicted - tasks.y_query).square().mean(dim=-1)

    def observe(step: int, parameters: tuple[Tensor, ...], losses: Tensor) -> None:
        nonlocal window
        window = window + losses / every
        if (step + 1) % every == 0:
            seen.append((step + 1, window))
            window = torch.zeros_like(window)

    v, W = descend((v0, W0), loss, steps=steps, lr=lr, optimizer="adam", observe=observe, decay=True)
    products = v[..., :, None, None] * W.unsqueeze(-3)  # (..., p+1, p+1, p): coefficient of (1/N) z_a z_b x~_j
    symmetric = (products + products.transpose(-3, -2)) / 2  # z_a z_b is symmetric in a and b
    Gamma = 2 * symmetric[..., p, :p, :].mT
    rest = torch.cat([symmetric[..., :p, :p, :].flatten(-3), symmetric[..., p, p, :]], dim=-1)
    size = torch.linalg.vector_norm(rest, dim=-1) / torch.linalg.matrix_norm(Gamma)
    return LinearAttentionTraining(
        Gamma, size, torch.tensor([step for step, _ in seen]), torch.stack([loss for _, loss in seen])
    )
