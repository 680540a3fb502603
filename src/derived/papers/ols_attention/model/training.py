"""Training: does gradient descent find the least-squares weights?

symbol    name          meaning                                              axes
X, Y      X, Y          tokens and responses                                 (*batch, n, p), (*batch, n, m)
L         L             whitening map, W_Q = W_K = W_V = L                   (*batch, p, d)
P         P             read-out                                             (*batch, d, m)
read_out  read_out      "frozen": P keeps its value; "recomputed": P = L^T X^T Y / n from the current L; "trained"
eta       lr            step size, a number or one per batch entry           scalar or (*batch,)

A batch axis holds seeds, initial values or step sizes: the losses are summed over it, so that every entry descends its
own loss, as if it were alone.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from .checks import check_composable, check_count, check_matrix, check_rows
from .mechanism import linear_attention, whitening
from .mechanism import read_out as read_out_matrix
from .reachability import ReadOut

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
