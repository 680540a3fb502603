"""Optimisers that know no theory: what they find is the largest that there is."""

import numpy as np
from scipy import optimize, sparse

#: f and f' of each divergence, in numpy: nothing of the package's own divergences is used by the optimiser.
GENERATORS = {
    "kl": (lambda t: t * np.log(t), lambda t: np.log(t) + 1),
    "chi2": (lambda t: (t - 1) ** 2, lambda t: 2 * (t - 1)),
    "hellinger": (lambda t: (np.sqrt(t) - 1) ** 2 / 2, lambda t: (1 - t**-0.5) / 2),
    "js": (
        lambda t: (t * np.log(2 * t / (1 + t)) + np.log(2 / (1 + t))) / 2,
        lambda t: np.log(2 * t / (1 + t)) / 2,
    ),
}


def best_coupling(p: np.ndarray, h: np.ndarray) -> float:
    """The largest P(N = Y) over joint laws of N ~ p and Y ~ h: a linear program over V x V matrices."""
    V = len(p)
    margins = sparse.vstack(
        [sparse.kron(sparse.eye_array(V), np.ones((1, V))), sparse.kron(np.ones((1, V)), sparse.eye_array(V))]
    )
    exactly = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solution = optimize.linprog(
        -np.eye(V).ravel(), A_eq=margins, b_eq=np.concatenate([p, h]), bounds=(0, 1), options=exactly
    )
    if not solution.success:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    return -solution.fun


def largest_target(q: np.ndarray, n: int, budget: float, name: str) -> float:
    """max h_n over laws h with D_f(h || q) <= budget by SLSQP, the best of three starts; f and f' written out anew.

    The search runs over h = x^2 / sum x^2, where no slope is infinite at the boundary.
    """
    f, slope = GENERATORS[name]
    point, best = np.eye(len(q))[n], []

    def law(x: np.ndarray) -> np.ndarray:
        return np.maximum(x * x / (x @ x), 1e-300)

    def pulled(x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return 2 * x / (x @ x) * (gradient - law(x) @ gradient)

    within = {"type": "ineq", "fun": lambda x: budget - q @ f(law(x) / q)}
    within["jac"] = lambda x: -pulled(x, slope(law(x) / q))
    for step in (0.0, 0.2, 0.5):
        options = {"constraints": [within], "options": {"ftol": 1e-14, "maxiter": 1000}}
        start = np.sqrt((1 - step) * q + step * point)
        x = optimize.minimize(lambda x: -law(x)[n], start, jac=lambda x: -pulled(x, point), method="SLSQP", **options).x
        best.append(law(x))
    kept = [h[n] for h in best if q @ f(h / q) < budget + 1e-7]
    if not kept:
        raise RuntimeError(f"none of {len(best)} searches ended within the budget of {budget:g}")
    return max(kept)


def largest_by_cross_entropy(q: np.ndarray, budget: float) -> float:
    """The largest h_0 over laws h with -sum_i h_i ln q_i <= budget: a linear program."""
    V = len(q)
    solution = optimize.linprog(-np.eye(V)[0], [-np.log(q)], [budget], np.ones((1, V)), [1.0], bounds=(0, 1))
    if not solution.success:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    return -solution.fun
