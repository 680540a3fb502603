"""The mechanism: whitening, linear attention, and the layer whose forward pass is the least-squares fit.

symbol          name              meaning                                     axes
X, Y            X, Y              tokens and responses                        (..., n, p), (..., n, m)
X~              Xq                query tokens                                (..., nq, p)
L               L                 whitening map, L L^T = Sigma^+              (..., p, r)
P               P                 read-out L^T X^T Y / n                      (..., r, m)
W_Q, W_K, W_V   W_Q, W_K, W_V     attention weights                           (..., p, d)
W_FFN, W_p      W_FFN, W_p        feed-forward and output weights             (..., d, d), (..., d, m)
q, k, v         q, k, v           queries, keys, values                       (..., nq, d), (..., n, d), (..., n, e)
lambda          ridge             penalty n lambda ||B||^2                    scalar
beta            beta              inverse temperature of softmax              scalar
"""

from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from derived.lab.checks import check_at_least, check_choice, check_one_dtype, check_positive

from .checks import check_columns, check_composable, check_matrix, check_rows
from .theory import thin_svd

Order = Literal["auto", "scores", "state"]


def whitening(
    X: Float[Tensor, "*batch n p"], ridge: float = 0.0, rcond: float | None = None
) -> Float[Tensor, "*batch p r"]:
    """The whitening map L = V_r (Lambda_r + lambda)^{-1/2} of Sigma = X^T X / n = V Lambda V^T.

    With ridge = 0: L^T Sigma L = I_r and L L^T = Sigma^+. With ridge > 0: L L^T = (Sigma + lambda I)^{-1} on the row
    space of X. Computed as sqrt(n) V diag(1 / sqrt(s^2 + n lambda)) from the thin singular value decomposition
    X = U diag(s) V^T, so that the error grows like kappa and not like kappa^2.

    Shapes: X (..., n, p), returns (..., p, r) with r = rank X (over a batch the largest rank; columns that a member
    lacks are zero). Raises ValueError for an empty X, NaN, ridge < 0 or rcond < 0. [paper; thin form ours]

    >>> L = whitening(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
    >>> L @ L.T  # the inverse of X^T X / 2 = diag(1/2, 2)
    tensor([[2.0000, 0.0000],
            [0.0000, 0.5000]])
    """
    check_at_least("ridge", ridge, 0.0)
    svd = thin_svd(X, rcond)
    n = X.shape[-2]
    return svd.V * (n / (svd.s**2 + n * ridge)).sqrt().unsqueeze(-2)


def linear_attention(
    q: Float[Tensor, "*batch nq d"],
    k: Float[Tensor, "*batch n d"],
    v: Float[Tensor, "*batch n e"],
    *,
    normalize: bool = True,
    order: Order = "auto",
) -> Float[Tensor, "*batch nq e"]:
    """Linear attention (1/n) q k^T v: no softmax, no mask, no normaliser but 1/n over the n keys.

    "scores" computes (q k^T) v: O(nq n (d + e)) time, nq x n memory; "state" computes q (k^T v): O((nq + n) d e) time,
    d x e memory; "auto" takes the one with fewer multiplications. bfloat16 and float16 are multiplied in float32.

    Raises ValueError if axes or dtypes do not fit or the order is unknown. [paper: 1/n from its empirical covariance]

    >>> q, k, v = torch.tensor([[2.0]]), torch.tensor([[1.0], [3.0]]), torch.tensor([[10.0], [20.0]])
    >>> linear_attention(q, k, v)  # (2 * 1 * 10 + 2 * 3 * 20) / 2
    tensor([[70.]])
    """
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.ndim < 2 or tensor.shape[-2] == 0:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}; give (..., tokens >= 1, features)")
    check_one_dtype(q=q, k=k, v=v)
    check_columns("q", q, "k", k)
    check_rows("k", k, "v", v)
    (nq, d), (n, e) = q.shape[-2:], v.shape[-2:]
    check_choice("order", order, get_args(Order))
    if order == "auto":
        order = "scores" if nq * n * (d + e) < (nq + n) * d * e else "state"
    dtype = v.dtype
    if dtype in (torch.bfloat16, torch.float16):
        q, k, v = q.float(), k.float(), v.float()
    out = (q @ k.mT) @ v if order == "scores" else q @ (k.mT @ v)
    return (out / n if normalize else out).to(dtype)


class Weights(NamedTuple):
    """The weights of one linear-attention layer with its feed-forward and output maps."""

    W_Q: Tensor  # (..., p, d)
    W_K: Tensor  # (..., p, d)
    W_V: Tensor  # (..., p, e)
    W_FFN: Tensor  # (..., e, e)
    W_p: Tensor  # (..., e, m)


def read_out(
    X: Float[Tensor, "*batch n p"], Y: Float[Tensor, "*batch n m"], L: Float[Tensor, "*batch p d"]
) -> Float[Tensor, "*batch d m"]:
    """P = L^T X^T Y / n, the read-out that belongs to L. [paper]"""
    check_matrix("X", X)
    check_matrix("Y", Y)
    check_one_dtype(X=X, Y=Y, L=L)
    check_rows("X", X, "Y", Y)
    check_composable("X", X, "L", L)
    return (X @ L).mT @ Y / X.shape[-2]


def tied_weights(
    X: Float[Tensor, "*batch n p"], Y: Float[Tensor, "*batch n m"], L: Float[Tensor, "*batch p d"]
) -> Weights:
    """W_Q = W_K = W_V = L, W_FFN = I, W_p = P: by `ols-master` the layer outputs H_L^2 Y on X.

    L = whitening(X) gives least squares (`ols-forward-pass`). L = whitening(X, ridge) gives ridge applied twice
    (`ols-ridge`); for ridge once use ``ridge_weights``. Raises ValueError for NaN and rows that do not match.
    [paper; any L and ridge ours]

    >>> X, Y = torch.tensor([[1.0], [1.0], [5.0]]), torch.tensor([[1.0], [2.0], [3.0]])
    >>> layer = OLSTransformer(tied_weights(X, Y, torch.ones(1, 1)))
    >>> layer(X) / X  # H_L = X X^T / 3 squared, where least squares has 2 / 3
    tensor([[54.],
            [54.],
            [54.]])
    """
    P = read_out(X, Y, L)
    return Weights(L, L, L, torch.eye(L.shape[-1], dtype=L.dtype, device=L.device).expand(*L.shape[:-2], -1, -1), P)


def ridge_weights(
    X: Float[Tensor, "*batch n p"], Y: Float[Tensor, "*batch n m"], ridge: float, rcond: float | None = None
) -> Weights:
    """W_Q = W_K = L_lambda, W_V = L_0, W_p = L_0^T X^T Y / n: the layer outputs H_lambda H Y = H_lambda Y, ridge once.

    Raises ValueError for NaN, ridge < 0, rcond < 0 and rows that do not match. [ours]

    >>> X, Y = torch.tensor([[1.0], [1.0], [5.0]]), torch.tensor([[1.0], [2.0], [3.0]])
    >>> OLSTransformer(ridge_weights(X, Y, ridge=9.0))(X) / X  # X^T Y / (X^T X + 3 * 9) = 18 / 54
    tensor([[0.3333],
            [0.3333],
            [0.3333]])
    """
    shrunk, plain = whitening(X, ridge, rcond), whitening(X, 0.0, rcond)
    identity, P = tied_weights(X, Y, plain)[-2:]
    return Weights(shrunk, shrunk, plain, identity, P)


class OLSTransformer(nn.Module):
    """One linear-attention layer, a feed-forward map and a read-out: x -> LA(x W_Q, c W_K, c W_V) W_FFN W_p.

    Without ``context`` the tokens attend to themselves, c = x; with it they attend to stored tokens. There is no
    softmax, residual, normalisation or positional code, as in the paper's prototype. ``from_data`` makes the weights of
    least squares or ridge; raises ValueError for weights that do not fit together, and for NaN. [paper]

    >>> X, Y = torch.tensor([[1.0], [1.0], [5.0]]), torch.tensor([[1.0], [2.0], [3.0]])
    >>> layer = OLSTransformer.from_data(X, Y)
    >>> layer(X).flatten()  # the fit: slope 18 / 27
    tensor([0.6667, 0.6667, 3.3333])
    >>> layer(2 * X, context=X).flatten()  # and its prediction at other inputs
    tensor([1.3333, 1.3333, 6.6667])
    """

    def __init__(self, weights: Weights):
        super().__init__()
        for name, weight in zip(Weights._fields, weights, strict=True):
            check_weight(name, weight)
            check_one_dtype(**{name: weight, "W_Q": weights.W_Q})
        check_columns("W_Q", weights.W_Q, "W_K", weights.W_K)
        check_rows("W_Q", weights.W_Q, "W_K", weights.W_K)
        check_rows("W_K", weights.W_K, "W_V", weights.W_V)
        check_composable("W_V", weights.W_V, "W_FFN", weights.W_FFN)
        check_composable("W_FFN", weights.W_FFN, "W_p", weights.W_p)
        self.W_Q, self.W_K, self.W_V, self.W_FFN, self.W_p = (
            nn.Parameter(weight, requires_grad=False) for weight in weights
        )

    @classmethod
    def from_data(
        cls,
        X: Float[Tensor, "*batch n p"],
        Y: Float[Tensor, "*batch n m"],
        ridge: float = 0.0,
        rcond: float | None = None,
    ) -> "OLSTransformer":
        """The layer whose forward pass on X is the least-squares (or, with ridge > 0, the ridge) fit of Y.

        Shapes: X (..., n, p), Y (..., n, m); a batch of data sets gives a batch of weights. Raises ValueError for an
        empty X, NaN, rows that do not match, and ridge < 0. [paper; rank-deficient X and ridge ours]
        """
        check_at_least("ridge", ridge, 0.0)
        weights = ridge_weights(X, Y, ridge, rcond) if ridge > 0 else tied_weights(X, Y, whitening(X, 0.0, rcond))
        return cls(weights)

    def attention_matrix(
        self, x: Float[Tensor, "*batch nq p"], context: Float[Tensor, "*batch n p"] | None = None
    ) -> Float[Tensor, "*batch nq n"]:
        """A = (1/n) (x W_Q)(c W_K)^T, the hat matrix of the training tokens at the least-squares weights."""
        context = x if context is None else context
        self._check_tokens(x, context)
        return (x @ self.W_Q) @ (context @ self.W_K).mT / context.shape[-2]

    def forward(
        self, x: Float[Tensor, "*batch nq p"], context: Float[Tensor, "*batch n p"] | None = None
    ) -> Float[Tensor, "*batch nq m"]:
        """(1/n) (x W_Q)(c W_K)^T (c W_V) W_FFN W_p with c = context, or x itself.

        Raises ValueError unless x and context have as many features as the weights have rows.
        """
        context = x if context is None else context
        self._check_tokens(x, context)
        attended = linear_attention(x @ self.W_Q, context @ self.W_K, context @ self.W_V)
        return attended @ self.W_FFN @ self.W_p

    def _check_tokens(self, x: Tensor, context: Tensor) -> None:
        for name, tokens in (("x", x), ("context", context)):
            check_matrix(name, tokens)
            check_one_dtype(**{name: tokens, "W_Q": self.W_Q})
            check_composable(name, tokens, "W_Q", self.W_Q)


def check_weight(name: str, weight: Tensor) -> None:
    """Raise ValueError unless ``weight`` is a finite matrix; rank 0 (X = 0) leaves it without columns, or rows."""
    if not isinstance(weight, Tensor):
        raise ValueError(f"{name} is a {type(weight).__name__}; give a floating-point torch tensor")
    if weight.ndim < 2 or not weight.is_floating_point():
        raise ValueError(f"{name} has shape {tuple(weight.shape)} and dtype {weight.dtype}; give a real matrix")
    if not bool(torch.isfinite(weight).all()):
        raise ValueError(f"{name} contains NaN or infinity; give finite weights")


def in_context_ols(
    Xq: Float[Tensor, "*batch nq p"],
    X: Float[Tensor, "*batch n p"],
    Y: Float[Tensor, "*batch n m"],
    ridge: float = 0.0,
    rcond: float | None = None,
) -> Float[Tensor, "*batch nq m"]:
    """Labels as values: (1/n) (X~ L_lambda)(X L_lambda)^T Y = X~ B, the least-squares or ridge prediction.

    The weights depend on X alone and Y enters as context; here L_lambda is right as it is. Shapes: Xq (..., nq, p), X
    (..., n, p), Y (..., n, m). Raises ValueError for unfitting shapes, NaN and ridge < 0. [ours]

    >>> X, Y = torch.tensor([[1.0], [1.0], [5.0]]), torch.tensor([[1.0], [2.0], [3.0]])
    >>> in_context_ols(torch.tensor([[3.0]]), X, Y)
    tensor([[2.]])
    """
    check_matrix("Xq", Xq)
    check_matrix("Y", Y)
    check_one_dtype(Xq=Xq, Y=Y, X=X)
    check_columns("Xq", Xq, "X", X)
    L = whitening(X, ridge, rcond)
    return linear_attention(Xq @ L, X @ L, Y)


def _softmax_scores(Xq: Tensor, X: Tensor, Y: Tensor, beta: float) -> Tensor:
    """beta q^T k_j with q = L_c^T (x~ - xbar), k_j = L_c^T x_j, less their maximum, after checking the arguments."""
    check_matrix("Xq", Xq)
    check_matrix("X", X)
    check_matrix("Y", Y)
    check_one_dtype(Xq=Xq, Y=Y, X=X)
    check_columns("Xq", Xq, "X", X)
    check_rows("X", X, "Y", Y)
    centred = X - X.mean(dim=-2, keepdim=True)
    L = whitening(centred)
    scores = ((Xq - X.mean(dim=-2, keepdim=True)) @ L) @ (centred @ L).mT  # a shift of all keys changes no softmax
    return beta * (scores - scores.amax(dim=-1, keepdim=True))


def softmax_regression(
    Xq: Float[Tensor, "*batch nq p"], X: Float[Tensor, "*batch n p"], Y: Float[Tensor, "*batch n m"], beta: float
) -> Float[Tensor, "*batch nq m"]:
    """sum_j softmax_j(beta q^T k_j) y_j with whitened q and k: ybar at beta = 0, look-up as beta -> infinity.

    Raises ValueError for beta < 0. [ours]

    >>> X, Y = torch.tensor([[1.0], [1.0], [5.0]]), torch.tensor([[1.0], [2.0], [3.0]])
    >>> [round(float(softmax_regression(X[2:], X, Y, beta)), 3) for beta in (0.0, 1.0, 100.0)]
    [2.0, 2.864, 3.0]
    """
    check_at_least("beta", beta, 0.0)
    return torch.softmax(_softmax_scores(Xq, X, Y, beta), dim=-1) @ Y


def softmax_read_out(
    Xq: Float[Tensor, "*batch nq p"], X: Float[Tensor, "*batch n p"], Y: Float[Tensor, "*batch n m"], beta: float
) -> Float[Tensor, "*batch nq m"]:
    """ybar + (softmax_regression - ybar) / beta, which is least squares with intercept + O(beta), see `ols-dial`.

    Written as ybar + sum_j (e^{a_j} - 1)(y_j - ybar) / (beta sum_j e^{a_j}), since sum_j (y_j - ybar) = 0: nothing
    cancels as beta -> 0. Raises ValueError for beta <= 0. [ours]
    """
    check_positive("beta", beta)
    scores = _softmax_scores(Xq, X, Y, beta)
    mean = Y.mean(dim=-2, keepdim=True)
    return mean + torch.expm1(scores) @ (Y - mean) / (beta * torch.exp(scores).sum(dim=-1, keepdim=True))
