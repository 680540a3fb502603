"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

X, Y      tokens and responses                 (n, p), (n, m)
Xq        query tokens                         (nq, p)
L         whitening map                        (p, r)
ridge     penalty lambda                       scalar
"""

import numpy as np
import torch

from derived.lab.exercises import ask, checker, close, holds, ranges

from .model import mechanism, theory

# Numbers and a factor -------------------------------------------------------------------------------------------------


def _lonely() -> torch.Tensor:
    """The hat matrix of six tokens with four features, the first token alone on its axis."""
    X = torch.zeros(6, 4, dtype=torch.float64)
    X[0, 0] = 7.0
    X[1:, 1:] = torch.arange(15.0).reshape(5, 3).sin()
    return theory.hat_matrix(X)


leverage = (
    close(
        lambda: _lonely()[0, 1:].square().sum(),
        mistakes={
            "a row of a projector has the square norm that stands on its diagonal": 1.0,
            "what is left of the trace is not what is left of the row": 3.0,
        },
    ),
    close(
        lambda: _lonely()[0, 0],
        mistakes={
            "the fit of a far token is not held back by the others": 0.0,
            "n tokens do not share the response": 1 / 6,
        },
    ),
    close(
        lambda: _lonely().trace() - _lonely()[0, 0],
        mistakes={
            "the far token has used up a part of the trace": 4.0,
            "the trace is p, not n": 5.0,
        },
    ),
)


def _power_of_the_trace():
    X, Y = torch.arange(12.0, dtype=torch.float64).reshape(6, 2).cos(), torch.arange(6.0, dtype=torch.float64)[:, None]
    layer, grown = mechanism.OLSTransformer.from_data(X, Y), 3 * X
    growth = (layer(grown).norm() / layer(X).norm()).log()
    return growth / (theory.second_moment(grown).trace() / theory.second_moment(X).trace()).log()


scale = close(
    _power_of_the_trace,
    digits=3,
    mistakes={
        "that is the power of c, and the trace is a square": 3.0,
        "tokens enter the layer three times, not two": 1.0,
    },
)

# Implement: a whitening map -------------------------------------------------------------------------------------------

FLOAT32 = 1e-4  # of the largest entry: answers in single precision are welcome


def _tokens(generator: torch.Generator) -> dict:
    """Tokens of any rank: more rows than columns or fewer, singular values between 1 and 3."""
    n, p = (int(torch.randint(low, 8, (), generator=generator)) for low in (3, 2))
    rank = int(torch.randint(1, min(n, p) + 1, (), generator=generator))
    left, right = (
        torch.linalg.qr(torch.randn(size, rank, generator=generator, dtype=torch.float64)).Q for size in (n, p)
    )
    values = 1 + 2 * torch.rand(rank, generator=generator, dtype=torch.float64)
    return {"X": left * values @ right.mT, "rank": rank}


def _inverts_the_second_moment(whitening, X):
    """`ols-whitening`: L L^T = Sigma^+."""
    L, Sigma = torch.as_tensor(ask(whitening, None, X=X)), X.mT @ X / X.shape[0]
    if L.ndim != 2 or L.shape[0] != X.shape[1]:
        return f"L has shape {tuple(L.shape)}, and {X.shape[1]} rows are asked for"
    off = (L @ L.mT - torch.linalg.pinv(Sigma)).abs().max() / torch.linalg.pinv(Sigma).abs().max()
    return None if off <= FLOAT32 else f"L L^T is {off:.2g} off the inverse of Sigma on its range, relatively"


def _makes_a_projector(whitening, X, rank):
    """`ols-hat`: the attention matrix is a projector whose trace is the rank."""
    Z = X @ torch.as_tensor(ask(whitening, None, X=X))
    A = Z @ Z.mT / X.shape[0]
    if not (A @ A - A).abs().max() <= FLOAT32:
        return f"A A differs from A by {(A @ A - A).abs().max():.2g}"
    return None if abs(A.trace() - rank) <= FLOAT32 else f"the trace of A is {A.trace():.4g}, and X has rank {rank}"


def _keeps_its_digits(whitening, X):
    """The error grows like kappa, here 1e7, and not like its square."""
    Q = torch.linalg.qr(torch.cat([X, torch.eye(X.shape[0], dtype=X.dtype)], dim=1)).Q[:, :3]
    turn = torch.linalg.qr(Q[:3].mT + 2 * torch.eye(3, dtype=X.dtype)).Q
    long = Q * torch.tensor([1.0, 1e-3, 1e-7], dtype=X.dtype) @ turn
    Z = long @ torch.as_tensor(ask(whitening, None, X=long))
    off = (Z @ Z.mT / long.shape[0] - Q @ Q.mT).abs().max()
    return None if off <= 1e-6 else f"with singular values 1, 1e-3 and 1e-7 the projector is {off:.2g} off"


def _through_the_second_moment(X, power=-0.5, share=1e-10):
    values, V = torch.linalg.eigh(X.mT @ X / X.shape[0])
    kept = values > share * values[-1]
    return V[:, kept] * values[kept] ** power


whitening_map = holds(
    (_inverts_the_second_moment, _makes_a_projector, _keeps_its_digits),
    _tokens,
    mistakes={
        "through the second moment, which squares the condition number": _through_the_second_moment,
        "the inverse for its root": lambda X: _through_the_second_moment(X, power=-1.0),
    },
)

# Implement: in context ------------------------------------------------------------------------------------------------


def _context(generator: torch.Generator) -> dict:
    n, p = (int(torch.randint(low, low + 5, (), generator=generator)) for low in (8, 1))
    X, Xq = (torch.randn(rows, p, generator=generator, dtype=torch.float64) for rows in (n, 3))
    Y = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    return {"Xq": Xq, "X": X, "Y": Y, "ridge": ranges(ridge=(0.05, 2.0))(generator)["ridge"]}


def _far(found: np.ndarray, wanted: torch.Tensor) -> float:
    return float(np.abs(found - wanted.numpy()).max() / max(1.0, float(wanted.abs().max())))


def _minimises(predict, Xq, X, Y, ridge):
    """`ols-ridge`: at the minimum of ||Y - XB||^2 + n lambda ||B||^2 the gradient vanishes."""
    n, p = X.shape
    B = torch.linalg.solve(X.mT @ X + n * ridge * torch.eye(p, dtype=X.dtype), X.mT @ Y)
    off = _far(ask(predict, (3, 2), Xq=Xq, X=X, Y=Y, ridge=ridge), Xq @ B)
    return None if off <= FLOAT32 else f"a prediction is {off:.2g} off the ridge prediction"


def _is_least_squares_without_a_penalty(predict, Xq, X, Y):
    """`ols-held-out`, labels as values."""
    off = _far(ask(predict, (3, 2), Xq=Xq, X=X, Y=Y, ridge=0.0), Xq @ torch.linalg.lstsq(X, Y).solution)
    return None if off <= FLOAT32 else f"without a penalty a prediction is {off:.2g} off least squares"


def _knows_no_unit(predict, Xq, X, Y):
    """`ols-quantifiers` turned round: what scales with the tokens fails, and this may not."""
    once, twice = (ask(predict, (3, 2), Xq=c * Xq, X=c * X, Y=Y, ridge=0.0) for c in (1.0, 2.0))
    off = _far(twice, torch.as_tensor(once))
    return (
        None if off <= FLOAT32 else f"in other units, 2 X and 2 Xq, a prediction without a penalty moves by {off:.2g}"
    )


def _knows_no_order(predict, Xq, X, Y, ridge):
    once, turned = (ask(predict, (3, 2), Xq=Xq, X=x, Y=y, ridge=ridge) for x, y in ((X, Y), (X.flip(0), Y.flip(0))))
    off = _far(turned, torch.as_tensor(once))
    return None if off <= FLOAT32 else f"with the context read backwards a prediction moves by {off:.2g}"


def _plain(Xq, X, Y, penalty):
    return Xq @ torch.linalg.solve(X.mT @ X + penalty * torch.eye(X.shape[1], dtype=X.dtype), X.mT @ Y)


in_context = holds(
    (_is_least_squares_without_a_penalty, _minimises, _knows_no_unit, _knows_no_order),
    _context,
    mistakes={
        "the penalty lacks its n": lambda Xq, X, Y, ridge: _plain(Xq, X, Y, ridge),
        "the penalty does nothing": lambda Xq, X, Y, ridge: _plain(Xq, X, Y, 0.0),
    },
)

EXERCISES = {
    "ols-ex-leverage": leverage,
    "ols-ex-scale": scale,
    "ols-ex-whitening": whitening_map,
    "ols-ex-context": in_context,
}
check = checker(EXERCISES)
