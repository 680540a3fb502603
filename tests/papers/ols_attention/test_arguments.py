"""Bad arguments raise ValueError that names the argument."""

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.ols_attention import in_context, training
from derived.papers.ols_attention.data import problems as data
from derived.papers.ols_attention.model import mechanism, memory, reachability, theory

X = torch.randn(6, 3, generator=stream(0, "X"), dtype=torch.float64)
Y = torch.randn(6, 2, generator=stream(0, "Y"), dtype=torch.float64)
EYE = torch.eye(3, dtype=torch.float64)
NAN = X.clone()
NAN[2, 1] = torch.nan
G = stream(0, "unused")
WEIGHTS = mechanism.tied_weights(X, Y, mechanism.whitening(X))

BAD_CALLS = {
    "whitening of nothing": (lambda: mechanism.whitening(X[:0]), "X has shape"),
    "whitening of a vector": (lambda: mechanism.whitening(X[:, 0]), "X has shape"),
    "whitening of integers": (lambda: mechanism.whitening(torch.ones(2, 2, dtype=torch.int64)), "X is a tensor of"),
    "whitening of an array": (lambda: mechanism.whitening(np.ones((2, 2))), "X is a ndarray"),
    "whitening in half precision": (lambda: mechanism.whitening(X.half()), "X has the dtype torch.float16"),
    "Y of another dtype": (lambda: mechanism.tied_weights(X, Y.float(), EYE), "Y has the dtype torch.float32 and L"),
    "L of whole numbers": (lambda: mechanism.tied_weights(X, Y, EYE.long()), "L is a tensor of torch.int64"),
    "keys of whole numbers": (lambda: mechanism.linear_attention(X, X.long(), Y), "k is a tensor of torch.int64"),
    "Lambda in half precision": (lambda: theory.optimal_linear_attention(EYE.half(), 5), "Lambda has the dtype"),
    "whitening of NaN": (lambda: mechanism.whitening(NAN), "X contains NaN"),
    "negative ridge": (lambda: mechanism.whitening(X, -1.0), "ridge = -1;"),
    "negative rcond": (lambda: mechanism.whitening(X, 0.0, -1.0), "rcond = -1;"),
    "rows of Y": (lambda: mechanism.OLSTransformer.from_data(X, Y[:5]), r"Y has the shape \(5, .* beside X \(6, "),
    "shape of L": (lambda: mechanism.tied_weights(X, Y, EYE[:2]), "X .* cannot multiply L"),
    "shape of P": (lambda: mechanism.OLSTransformer(WEIGHTS._replace(W_p=Y)), "W_FFN .* cannot multiply W_p"),
    "shape of W_K": (lambda: mechanism.OLSTransformer(WEIGHTS._replace(W_K=EYE[:, :2])), "W_Q has 3 columns"),
    "NaN weight": (lambda: mechanism.OLSTransformer(WEIGHTS._replace(W_V=EYE / 0)), "W_V contains NaN"),
    "tokens": (lambda: mechanism.OLSTransformer(WEIGHTS)(X[:, :2]), "x .* cannot multiply W_Q"),
    "context": (lambda: mechanism.OLSTransformer(WEIGHTS)(X, X[:, :2]), "context has the shape .* beside x "),
    "queries": (lambda: mechanism.in_context_ols(X[:, :2], X, Y), "Xq has 2 columns and X has 3"),
    "negative beta": (lambda: mechanism.softmax_regression(X, X, Y, -1.0), "beta = -1;"),
    "keys and values": (lambda: mechanism.linear_attention(X, X, Y[:2]), "k has 6 rows and v has 2"),
    "keys and queries": (lambda: mechanism.linear_attention(Y, X, Y), "q has 2 columns and k has 3"),
    "no keys": (lambda: mechanism.linear_attention(X, X[:0], Y[:0]), "k has shape"),
    "order": (lambda: mechanism.linear_attention(X, X, Y, order="fast"), "order = 'fast'"),
    "method": (lambda: theory.ols_coefficients(X, Y, method="normal"), "method = 'normal'"),
    "wide full rank": (lambda: theory.ols_coefficients(X[:2], Y[:2], method="full rank"), "use method='svd'"),
    "singular full rank": (lambda: theory.ols_coefficients(X[:, [0, 0]], Y, method="full rank"), "full column rank"),
    "filter": (lambda: theory.spectral_filter([1.0], 0.1, "lasso"), "weights = 'lasso'"),
    "eigenvalue": (lambda: theory.spectral_filter([-1.0], 0.1, "ols"), "eigenvalues"),
    "asymmetric Lambda": (lambda: theory.optimal_linear_attention(X[:3], 5), "not one symmetric"),
    "indefinite Lambda": (lambda: theory.optimal_linear_attention(-EYE, 5), "not positive definite"),
    "no context": (lambda: theory.optimal_linear_attention(EYE, 0), "N = 0"),
    "read_out of the slope": (lambda: reachability.prediction_slope(1, 1, 1, 1, "free"), "read_out = 'free'"),
    "no variance": (lambda: reachability.predicted_end_point(1, 1, 0.0, 1), "s = 0;"),
    "P0 missing": (lambda: training.train_matrix(X, Y, EYE, read_out="trained"), "P0 missing"),
    "P0 given": (lambda: training.train_matrix(X, Y, EYE, EYE[:, :2]), "P0 given"),
    "P0 shape": (lambda: training.train_matrix(X, Y, EYE, EYE, read_out="trained"), "P0 has shape"),
    "L0 shape": (lambda: training.train_matrix(X, Y, EYE[:2]), "cannot multiply L0"),
    "read_out": (lambda: training.train_matrix(X, Y, EYE, read_out="free"), "read_out = 'free'"),
    "optimizer": (lambda: training.train_matrix(X, Y, EYE, optimizer="sgd"), "optimizer = 'sgd'"),
    "epochs": (lambda: training.train_matrix(X, Y, EYE, epochs=0), "epochs = 0"),
    "scalar tokens": (lambda: training.train_scalar(X[:, 0], Y[:5, 0], EYE[0, 0]), "x has 6 tokens and y has 5"),
    "scalar zero": (lambda: training.train_scalar(0 * X[:, 0], Y[:, 0], EYE[0, 0]), "x is zero"),
    "scalar P0": (lambda: training.train_scalar(X[:, 0], Y[:, 0], EYE[0, 0], EYE[0, 0]), "without P0"),
    "too few tasks": (
        lambda: in_context.regress_linear_attention(data.random_tasks(EYE, 4, batch=(8,), generator=G)),
        "at least 9 tasks",
    ),
    "rank above p": (lambda: data.random_regression(5, 2, rank=3, generator=G), "rank = 3 exceeds p = 2"),
    "kappa below one": (lambda: data.random_regression(5, 2, kappa=0.5, generator=G), "kappa = 0.5"),
    "no rows": (lambda: data.paper_problem(0, generator=G), "n = 0"),
    "cue of another length": (lambda: memory.recall(X[0, :2], X), "cue has 2 columns and patterns has 3"),
    "no patterns": (lambda: memory.recall(X[0], X[:0]), "patterns has shape"),
    "beta zero": (lambda: memory.recall(X[0], X, 0.0), "beta = 0;"),
    "ensemble": (lambda: memory.softmax_rate(1.0, ensemble="cube"), "ensemble = 'cube'"),
    "rate at no temperature": (lambda: memory.softmax_rate(0.0), "beta = 0;"),
    "overlap": (lambda: memory.linear_load(1.5), "overlap = 1.5"),
    "overlap of a cue": (lambda: memory.damaged(X[0], 2.0, G), "overlap = 2"),
    "one dimension": (lambda: memory.crowd_weight(1, 1.0), "d = 1"),
    "a Bessel function that underflows": (lambda: memory.crowd_weight(4000, 0.2), "too large at beta = 0.2"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_arguments_are_named(case):
    """Each error says which argument is wrong, and what was given."""
    call, message = BAD_CALLS[case]
    with pytest.raises(ValueError, match=message):
        call()
