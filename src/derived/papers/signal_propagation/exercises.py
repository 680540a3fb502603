"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

q, p      E u^2 = E v^2 and E u v of a Gaussian pair; second moment and overlap of the stream
alpha     slope of the map
a, s      (sigma_O sigma_V)^2 and (sigma_2 sigma_1)^2
n         number of tokens
J, K      averaged partial Jacobian norm and its companion
"""

import math

import numpy as np
from scipy import optimize

from derived.lab.exercises import FLOAT32, Wrong, ask, checker, close, holds, ranges

from .model import asymptotics, kernels, meanfield

# Formulas and numbers -------------------------------------------------------------------------------------------------

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(96)


two_thirds = (
    close(
        lambda r: asymptotics.zeta(1.0, r),
        ranges(r=(0.5, 8.0)),
        mistakes={
            "that is its value at one ratio": lambda r: 2 / 3,
            "it agrees at r = 4 alone": lambda r: r / 6,
        },
    ),
    close(
        lambda: optimize.brentq(lambda r: float(asymptotics.zeta(1.0, r)) - 0.5, 0.1, 10),
        digits=3,
        mistakes={
            "half of s enters, not s": 1.0,
            "that is the ratio of a usual network": 4.0,
        },
    ),
)


def _matched():
    a, s = asymptotics.vit_variances()

    def log_J(kernel):
        return float(meanfield.propagate(1.0, 0.2, kernel=kernel, a=a, s=s, n=197, depth=36).log_J_backward[0])

    level = log_J(kernels.LayerNormKernel())
    return optimize.brentq(lambda alpha: log_J(kernels.ErfKernel(alpha)) - level, 0.1, 2.0, xtol=1e-6)


matched = close(
    _matched,
    digits=2,
    mistakes={
        "at alpha = 1 Derf amplifies more": 1.0,
        "so small a slope amplifies less": 0.3,
    },
)


# Implement: the moments of a sine -------------------------------------------------------------------------------------


def _moments(kernel, q, p, alpha):
    found = ask(kernel, None, q=q, p=p, alpha=alpha)
    if found.shape != (4,):
        raise Wrong("four moments are asked for, q~, p~, q^ and p^")
    return found.tolist()


def _off(found, wanted):
    return abs(found - wanted) > FLOAT32 * max(1.0, abs(wanted))


def _equals_the_integral(kernel, q, p, alpha):
    """`sp-fresh`: the moments are means over a Gaussian pair; here by quadrature."""
    u, v = q**0.5 * NODES[:, None], p / q**0.5 * NODES[:, None] + (q - p * p / q) ** 0.5 * NODES
    mean = lambda f: WEIGHTS @ f @ WEIGHTS / (2 * np.pi)  # noqa: E731
    wave, slope = (lambda x: np.sin(alpha * x)), (lambda x: alpha * np.cos(alpha * x))
    wanted = [mean(f(x) * f(y)) for f in (wave, slope) for x, y in ((u, u + 0 * v), (u, v))]
    names = ("q~", "p~", "q^", "p^")
    wrong = [
        f"{name} is {found:.4g}, and an integral gives another"
        for name, found, right in zip(names, _moments(kernel, q, p, alpha), wanted, strict=True)
        if _off(found, right)
    ]
    return "; ".join(wrong) or None


def _price(kernel, q, p, alpha):
    """`sp-moments`: the derivative of p~ by p is p^."""
    step = 1e-4
    rise = (_moments(kernel, q, p + step, alpha)[1] - _moments(kernel, q, p - step, alpha)[1]) / (2 * step)
    slope = _moments(kernel, q, p, alpha)[3]
    return f"p~ rises in p at {rise:.4g}, and p^ is {slope:.4g}" if abs(rise - slope) > 1e-4 * max(1, slope) else None


def _meets_its_diagonal(kernel, q, alpha):
    """At p = q the pair is one variable."""
    q_tilde, p_tilde, q_hat, p_hat = _moments(kernel, q, q, alpha)
    if _off(p_tilde, q_tilde) or _off(p_hat, q_hat):
        return f"at p = q the pairs are ({q_tilde:.4g}, {p_tilde:.4g}) and ({q_hat:.4g}, {p_hat:.4g})"
    return None


def _sine(square=1.0, slope=2.0, even=math.cosh, odd=math.sinh):
    def moments(q, p, alpha):
        c = square * alpha**2
        damp = math.exp(-c * q)
        scale = alpha**slope * damp
        return damp * odd(c * q), damp * odd(c * p), scale * even(c * q), scale * even(c * p)

    return moments


sine = holds(
    (_equals_the_integral, _price, _meets_its_diagonal),
    ranges(q=(0.5, 2.0), p=(-0.45, 0.45), alpha=(0.3, 1.2)),
    mistakes={
        "the slope lacks its alpha": _sine(slope=0.0),
        "one alpha of two": _sine(slope=1.0),
    },
)

# Implement: the amplification -----------------------------------------------------------------------------------------


_networks = ranges(q0=(0.5, 2.0), p0=(0.05, 0.4), alpha=(0.3, 1.5), a=(0.1, 1.0), s=(0.1, 1.0), n=(3, 40), depth=(1, 8))


def _J(amplification, kernel, q0, p0, **point):
    """The answer's J; its arguments in the order of the text."""
    return float(ask(amplification, q0=q0, p0=p0, kernel=kernel, **point))


def _moves_forward(q, p, kernel, a, s, n, depth):
    """The moments before each attention and before each MLP, `sp-forward` with uniform attention."""
    for _ in range(depth):
        first = kernel.moments(q, p)
        m = first.p_tilde + (first.q_tilde - first.p_tilde) / n
        q, p = q + a * m, p + a * m
        second = kernel.moments(q, p)
        rho = min(1.0, float(second.p_tilde / second.q_tilde))
        yield first, second, float(kernels.arccos_kernel_prime(rho))
        q, p = q + s / 2 * second.q_tilde, p + s * second.q_tilde * float(kernels.arccos_kernel(rho))


def _product(q0, p0, kernel, a, s, n, depth):
    """J^{depth,0} as a product of two-by-two matrices from the source on, `sp-backward`."""
    row = np.array([1.0, 0.0])  # of the product so far: what it makes of (J, K) of the target
    for first, second, both in _moves_forward(np.array(q0), np.array(p0), kernel, a, s, n, depth):
        heads = np.array([[first.q_hat], [first.p_hat]]) * np.array([1.0, n - 1.0]) * a / n
        row = row @ (np.eye(2) + heads) @ np.diag([1 + s / 2 * second.q_hat, 1 + s * both * second.p_hat])
    return row[0]


def _follows_the_recurrences(amplification, q0, p0, alpha, a, s, n, depth):
    """`sp-backward`, for Derf, and for LayerNorm, whose slope falls as q grows."""
    given = {"q0": q0, "p0": p0, "a": a, "s": s, "n": n, "depth": depth}
    for name, kernel in (("Derf", kernels.ErfKernel(alpha)), ("LayerNorm", kernels.LayerNormKernel())):
        found, wanted = _J(amplification, kernel, **given), _product(kernel=kernel, **given)
        if _off(found, wanted):
            return f"with {name} J is {found:.5g}, and the product of the blocks is another"
    return None


def _is_one_without_branches(amplification, q0, p0, alpha, n, depth):
    found = _J(amplification, kernels.ErfKernel(alpha), q0=q0, p0=p0, a=0.0, s=0.0, n=n, depth=depth)
    return f"with all branches silent J is {found:.5g}" if _off(found, 1.0) else None


def _engine(kernel_of=lambda kernel: kernel, **changes):
    def J(q0, p0, kernel, a, s, n, depth):
        given = {"a": a, "s": s, "n": n, "depth": depth} | {key: f(a, s, n) for key, f in changes.items()}
        return meanfield.propagate(q0, p0, kernel=kernel_of(kernel), **given).J_backward[0]

    return J


class _NoDivision(kernels.LayerNormKernel):
    """LayerNorm whose slope forgets to divide by q."""

    def moments(self, q, p):
        found = super().moments(q, p)
        return found._replace(q_hat=np.ones_like(found.q_hat), p_hat=np.ones_like(found.p_hat))


def _undivided(kernel):
    return _NoDivision() if isinstance(kernel, kernels.LayerNormKernel) else kernel


amplification = holds(
    (_is_one_without_branches, _follows_the_recurrences),
    _networks,
    mistakes={
        "the slope of LayerNorm is not divided by q": _engine(_undivided),
        "K is dropped": _engine(cross_token=lambda a, s, n: False),
    },
)

EXERCISES = {
    "sp-ex-two-thirds": two_thirds,
    "sp-ex-match": matched,
    "sp-ex-sine": sine,
    "sp-ex-amplification": amplification,
}
check = checker(EXERCISES)
