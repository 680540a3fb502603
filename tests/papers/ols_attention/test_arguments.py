"""Bad arguments raise ValueError that names the argument; annotated shapes hold when they are checked."""

import importlib
import sys

import numpy as np
import pytest
import torch
from jaxtyping import install_import_hook

from derived.lab.rng import stream
from derived.papers.ols_attention import in_context, training
from derived.papers.ols_attention.data import problems as data
from derived.papers.ols_attention.model import capacity, hopfield, mechanism, reachability, theory

X = torch.randn(6, 3, generator=stream(0, "X"), dtype=torch.float64)
Y = torch.randn(6, 2, generator=stream(0, "Y"), dtype=torch.float64)
EYE = torch.eye(3, dtype=torch.float64)
NAN = X.clone()
NAN[2, 1] = torch.nan
SPINS = hopfield.random_signs(4, 5, generator=stream(0, "spins"))
G = stream(0, "unused")
WEIGHTS = mechanism.tied_weights(X, Y, mechanism.whitening(X))

BAD_CALLS = {
    "whitening of nothing": (lambda: mechanism.whitening(X[:0]), "X has shape"),
    "whitening without features": (lambda: mechanism.whitening(X[:, :0]), "X has shape"),
    "whitening of a vector": (lambda: mechanism.whitening(X[:, 0]), "X has shape"),
    "whitening of integers": (lambda: mechanism.whitening(torch.ones(2, 2, dtype=torch.int64)), "X is a tensor of"),
    "whitening of an array": (lambda: mechanism.whitening(np.ones((2, 2))), "X is a ndarray"),
    "whitening in half precision": (lambda: mechanism.whitening(X.half()), "X has the dtype torch.float16"),
    "Y of another dtype": (lambda: mechanism.tied_weights(X, Y.float(), EYE), "Y has the dtype torch.float32 and L"),
    "L of whole numbers": (lambda: mechanism.tied_weights(X, Y, EYE.long()), "L is a tensor of torch.int64"),
    "weights of two dtypes": (
        lambda: mechanism.OLSTransformer(WEIGHTS._replace(W_p=WEIGHTS.W_p.float())),
        "W_p has the dtype torch.float32 and W_Q",
    ),
    "tokens of another dtype": (lambda: mechanism.OLSTransformer(WEIGHTS)(X.float()), "x has the dtype torch.float32"),
    "context of whole numbers": (lambda: mechanism.in_context_ols(X, X.long(), Y), "X is a tensor of torch.int64"),
    "queries of another dtype": (lambda: mechanism.softmax_regression(X.float(), X, Y, 1.0), "Xq has the dtype"),
    "keys of whole numbers": (lambda: mechanism.linear_attention(X, X.long(), Y), "k is a tensor of torch.int64"),
    "values of another dtype": (
        lambda: mechanism.linear_attention(X, X, Y.float()),
        "q has the dtype torch.float64 and v",
    ),
    "responses of another dtype": (lambda: theory.ols_coefficients(X, Y.float()), "Y has the dtype torch.float32"),
    "Lambda of whole numbers": (lambda: theory.optimal_linear_attention(EYE.long(), 5), "Lambda is a tensor of"),
    "Lambda in half precision": (lambda: theory.optimal_linear_attention(EYE.half(), 5), "Lambda has the dtype"),
    "spins of two dtypes": (lambda: hopfield.flip_field(SPINS[0].float(), SPINS, 2), "state has the dtype"),
    "spins of whole numbers": (lambda: hopfield.kh_step(SPINS[0].long(), SPINS, 2), "state is a tensor of torch.int64"),
    "capacity of whole numbers": (
        lambda: hopfield.capacity(8, 2, generator=G, dtype=torch.int64),
        "dtype = torch.int64; give a floating-point type",
    ),
    "L0 of another dtype": (lambda: training.train_matrix(X, Y, EYE.float()), "L0 has the dtype torch.float32"),
    "l0 of whole numbers": (
        lambda: training.train_scalar(X[:, 0], Y[:, 0], torch.tensor(1)),
        "l0 is a tensor of torch.int64",
    ),
    "whitening of NaN": (lambda: mechanism.whitening(NAN), "X contains NaN"),
    "negative ridge": (lambda: mechanism.whitening(X, -1.0), "ridge = -1;"),
    "NaN ridge": (lambda: mechanism.whitening(X, float("nan")), "ridge = nan"),
    "negative rcond": (lambda: mechanism.whitening(X, 0.0, -1.0), "rcond = -1;"),
    "rows of Y": (lambda: mechanism.OLSTransformer.from_data(X, Y[:5]), "Y has n = 5, but X has n = 6"),
    "ridge of from_data": (lambda: mechanism.OLSTransformer.from_data(X, Y, -0.1), "ridge = -0.1"),
    "NaN in Y": (lambda: mechanism.OLSTransformer.from_data(X, Y / 0), "Y contains NaN"),
    "shape of L": (lambda: mechanism.tied_weights(X, Y, EYE[:2]), "X .* cannot multiply L"),
    "shape of P": (lambda: mechanism.OLSTransformer(WEIGHTS._replace(W_p=Y)), "W_FFN .* cannot multiply W_p"),
    "shape of W_K": (lambda: mechanism.OLSTransformer(WEIGHTS._replace(W_K=EYE[:, :2])), "W_Q has 3 columns"),
    "NaN weight": (lambda: mechanism.OLSTransformer(WEIGHTS._replace(W_V=EYE / 0)), "W_V contains NaN"),
    "tokens": (lambda: mechanism.OLSTransformer(WEIGHTS)(X[:, :2]), "x .* cannot multiply W_Q"),
    "context": (lambda: mechanism.OLSTransformer(WEIGHTS)(X, X[:, :2]), "context has p = 2, but x has p = 3"),
    "queries": (lambda: mechanism.in_context_ols(X[:, :2], X, Y), "Xq has 2 columns and X has 3"),
    "negative beta": (lambda: mechanism.softmax_regression(X, X, Y, -1.0), "beta = -1;"),
    "beta of the read-out": (lambda: mechanism.softmax_read_out(X, X, Y, 0.0), "beta = 0;"),
    "keys and values": (lambda: mechanism.linear_attention(X, X, Y[:2]), "k has 6 rows and v has 2"),
    "keys and queries": (lambda: mechanism.linear_attention(Y, X, Y), "q has 2 columns and k has 3"),
    "no keys": (lambda: mechanism.linear_attention(X, X[:0], Y[:0]), "k has shape"),
    "order": (lambda: mechanism.linear_attention(X, X, Y, order="fast"), "order = 'fast'"),
    "method": (lambda: theory.ols_coefficients(X, Y, method="normal"), "method = 'normal'"),
    "wide full rank": (lambda: theory.ols_coefficients(X[:2], Y[:2], method="full rank"), "use method='svd'"),
    "singular full rank": (lambda: theory.ols_coefficients(X[:, [0, 0]], Y, method="full rank"), "full column rank"),
    "filter": (lambda: theory.spectral_filter([1.0], 0.1, "lasso"), "weights = 'lasso'"),
    "eigenvalue": (lambda: theory.spectral_filter([-1.0], 0.1, "ols"), "eigenvalues"),
    "no tokens": (lambda: theory.batch_error(2, 0), "n = 0"),
    "asymmetric Lambda": (lambda: theory.optimal_linear_attention(X[:3], 5), "not one symmetric"),
    "indefinite Lambda": (lambda: theory.optimal_linear_attention(-EYE, 5), "not positive definite"),
    "no context": (lambda: theory.optimal_linear_attention(EYE, 0), "N = 0"),
    "read_out of the slope": (lambda: reachability.prediction_slope(1, 1, 1, 1, "free"), "read_out = 'free'"),
    "read_out of the edge": (lambda: reachability.edge_of_stability(1, 1, "free"), "read_out = 'free'"),
    "end point": (lambda: reachability.edge_of_stability(1, 1, "trained"), "give end_point"),
    "no variance": (lambda: reachability.predicted_end_point(1, 1, 0.0, 1), "s = 0;"),
    "P0 missing": (lambda: training.train_matrix(X, Y, EYE, read_out="trained"), "P0 missing"),
    "P0 given": (lambda: training.train_matrix(X, Y, EYE, EYE[:, :2]), "P0 given"),
    "P0 shape": (lambda: training.train_matrix(X, Y, EYE, EYE, read_out="trained"), "P0 has shape"),
    "L0 shape": (lambda: training.train_matrix(X, Y, EYE[:2]), "cannot multiply L0"),
    "read_out": (lambda: training.train_matrix(X, Y, EYE, read_out="free"), "read_out = 'free'"),
    "optimizer": (lambda: training.train_matrix(X, Y, EYE, optimizer="sgd"), "optimizer = 'sgd'"),
    "epochs": (lambda: training.train_matrix(X, Y, EYE, epochs=0), "steps = 0"),
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
    "degree one": (lambda: hopfield.flip_field(SPINS[0], SPINS, 1), "degree >= 2"),
    "degree true": (lambda: hopfield.kh_step(SPINS[0], SPINS, True), "degree >= 2"),
    "softmax as a spin rule": (lambda: hopfield.kh_step(SPINS[0], SPINS, "lse"), "interaction = 'lse'"),
    "no patterns": (lambda: hopfield.kh_step(SPINS[0], SPINS[:0], 2), "patterns has shape"),
    "spins": (lambda: hopfield.kh_step(0.5 * SPINS[0], SPINS, 2), "state has entries other than"),
    "pattern spins": (lambda: hopfield.kh_step(SPINS[0], 2 * SPINS, 2), "patterns has entries other than"),
    "state length": (lambda: hopfield.kh_step(SPINS[0, :4], SPINS, 2), "state has 4 columns and patterns has 5"),
    "weights": (lambda: hopfield.flip_field(SPINS[0], SPINS, 2, torch.ones(3)), "one multiplicity per pattern"),
    "NaN state": (lambda: hopfield.energy(NAN, X, "lse"), "state contains NaN"),
    "beta zero": (lambda: hopfield.retrieve(SPINS, SPINS, "lse", beta=0.0), "beta = 0;"),
    "no steps": (lambda: hopfield.retrieve(SPINS, SPINS, 2, steps=0), "steps = 0"),
    "overflow": (lambda: hopfield.energy(torch.ones(800), torch.ones(1, 800), "exp"), "overflows"),
    "energy of no spins": (lambda: hopfield.energy(0.5 * SPINS[0], SPINS, 2), "state has entries other than"),
    "overshoot of no scale": (lambda: reachability.overshoot(1.5, 0.0, 2.0, 0.01), "s = 0"),
    "read-out kind": (lambda: hopfield.linear_read_out(SPINS, SPINS, "svd"), "kind = 'svd'"),
    "flips": (lambda: hopfield.corrupt(SPINS, 1.5, generator=G), "rho = 1.5"),
    "K zero": (lambda: hopfield.bit_error_rate(5, 0, 2, generator=G), "K = 0"),
    "N zero": (lambda: hopfield.capacity(0, 2, generator=G), "N = 0"),
    "error level": (lambda: hopfield.capacity(8, 2, 0.5, generator=G), "error = 0.5"),
    "unreachable level": (lambda: hopfield.capacity(1, 2, 0.01, generator=G), "give a smaller error"),
    "trials": (lambda: hopfield.all_fixed(5, 3, "exp", trials=0, generator=G), "trials = 0"),
    "theory of no patterns": (lambda: capacity.bit_error_theory(5, 0, 2), "K = 0"),
    "theory of no spins": (lambda: capacity.bit_error_theory(0, 5, 2), "N = 0"),
    "bridge": (lambda: capacity.bridge(1), "degree = 1"),
    "rate": (lambda: capacity.cramer_rate(1.5), "x = 1.5"),
    "rho": (lambda: capacity.demircigil_exponent(0.5), "rho = 0.5"),
    "probability": (lambda: capacity.ramsauer_capacity(1, 1, 20, 1.0), "p = 1;"),
    "dimension": (lambda: capacity.ramsauer_capacity(1, 1, 1, 0.1), "d = 1"),
    "radius": (lambda: capacity.ramsauer_capacity(1, 0.0, 20, 0.1), "K = 0;"),
    "lambda": (lambda: capacity.sphere_exponent(0.0), "lambda = 0;"),
    "probes": (lambda: capacity.retrieval_bound(SPINS[:2], SPINS, 1.0), "one probe per pattern"),
    "span": (lambda: capacity.projection_noise(6, 5), "rank = 6 exceeds d = 5"),
    "moments of no dimension": (lambda: theory.wishart_moments(0, 5), "p = 0"),
    "asymptotics": (lambda: capacity.errorless_capacity(1, 2), "N = 1"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_arguments_are_named(case):
    """Each error says which argument is wrong, and what was given."""
    call, message = BAD_CALLS[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_annotated_shapes_hold():
    """The jaxtyping annotations of every module, checked by beartype on a run through the public functions."""
    model = ["checks", "theory", "reachability", "capacity", "mechanism", "hopfield"]
    paths = ["data.problems", "in_context", "training", *(f"model.{name}" for name in model)]
    names = {path.rpartition(".")[2]: f"derived.papers.ols_attention.{path}" for path in paths}
    saved = {module: sys.modules.pop(module) for module in names.values()}
    try:
        with install_import_hook([*saved], "beartype.beartype"):
            fresh = {name: importlib.import_module(module) for name, module in names.items()}
        with pytest.raises(TypeError, match=r"(?s)."):
            fresh["mechanism"].whitening("not a tensor")
        for batch in ((), (2,), (2, 1)):
            problem = fresh["problems"].random_regression(7, 3, 2, batch=batch, generator=stream(1, "typed"))
            layer = fresh["mechanism"].OLSTransformer.from_data(problem.X, problem.Y, 0.1)
            layer(problem.X, problem.X[..., :2, :])
            layer.attention_matrix(problem.X[..., :4, :], problem.X)
            for function in ("in_context_ols", "softmax_regression", "softmax_read_out"):
                args = (0.5,) if "softmax" in function else ()
                getattr(fresh["mechanism"], function)(problem.X[..., :2, :], problem.X, problem.Y, *args)
            th = fresh["theory"]
            B = th.ols_coefficients(problem.X, problem.Y, method="full rank")
            th.hat_matrix(problem.X), th.ridge_smoother(problem.X, 0.1), th.second_moment(problem.X)
            th.rounding_bound(problem.X, problem.X[..., :2, :], self_attention=True)
            for function in ("held_out_self_attention", "ols_with_intercept", "softmax_dial_error"):
                getattr(th, function)(problem.X[..., :2, :], problem.X, problem.Y)
            L = fresh["mechanism"].whitening(problem.X)
            th.smoother(problem.X, L), fresh["reachability"].matrix_loss(L, th.second_moment(problem.X), B)
            fresh["training"].train_matrix(problem.X, problem.Y, L, epochs=2)
            tasks = fresh["problems"].random_tasks(EYE, 4, batch=(*batch, 10), generator=stream(1, "tasks"))
            Gamma = fresh["in_context"].regress_linear_attention(tasks)
            th.linear_attention_risk(Gamma, EYE, 4), th.optimal_linear_attention(EYE, 4)
            fresh["in_context"].train_linear_attention(
                EYE, 4, steps=2, num_tasks=2, batch=batch, generator=stream(1, "runs")
            )
            memory = fresh["hopfield"]
            patterns = memory.random_signs(*batch, 4, 6, generator=stream(1, "patterns"))
            memory.flip_field(patterns[..., :2, :], patterns, 3), memory.kh_step(patterns, patterns, "exp")
            memory.energy(patterns, patterns, "lse"), memory.retrieve(patterns, patterns, "lse", beta=2.0)
            memory.linear_read_out(patterns, patterns, "hebb"), memory.corrupt(patterns, 0.2, generator=G)
            fresh["capacity"].retrieval_bound(patterns, patterns, 1.0, patterns)
        x, l0 = X[:, 0].expand(2, 6), torch.ones(2, dtype=torch.float64)
        fresh["training"].train_scalar(x, 2 * x, l0, l0, read_out="trained", epochs=2)
        memory.energy(SPINS[0], SPINS, 2), memory.flip_field(SPINS[0], SPINS, 2)
        (
            memory.bit_error_rate(6, 3, "exp", rho=0.2, trials=2, generator=G),
            memory.all_fixed(6, 3, 2, trials=2, generator=G),
        )
        memory.capacity(8, 3, trials=2, num_tests=2, generator=stream(1, "capacity"))
    finally:
        for module, before in saved.items():
            sys.modules[module] = before
            package, _, name = module.rpartition(".")
            setattr(sys.modules[package], name, before)
