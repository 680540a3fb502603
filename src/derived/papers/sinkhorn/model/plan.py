"""Sinkhorn's plan of a table of scores, in the limit and half-step by half-step.

symbol   name          meaning                                                         axes
S        scores        logits, or -C / epsilon; -inf where no mass may go              (..., n, m)
a, b     a, b          weights of the two texts, each of sum 1; None is uniform        (..., n), (..., m)
f, g     f, g          potentials: P = exp(S + f_i + g_j), up to (f + c, g - c)        (..., n), (..., m)
P        plan          the coupling of a and b nearest to e^S in KL                    (..., n, m)
omega    omega         over-relaxation; 1 is Sinkhorn's own step                       scalar
T        iterations    full iterations: a column step, then a row step                 int

Rows come first, from g = ln b: half-step 1 is softmax attention over the weighted tokens of b, with the weights
a_i b_j e^S_ij / sum_k b_k e^S_ik, and T iterations are 2 T + 1 half-steps. Every result ends on a row step, so rows
sum to a; ``residual`` says by how much the columns miss b.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from derived.lab.checks import check_count, check_fraction, check_positive

INF = float("inf")
NEVER = -1e4  # what libraries add in place of -inf, or less: the least number of a type, also after a change of type
Mask = Bool[Tensor, "*#batch n m"] | Float[Tensor, "*#batch n m"]  # True where mass may go; or added to the scores


class SinkhornResult(NamedTuple):
    """A plan, its potentials, and how far its columns still are from b."""

    log_plan: Float[Tensor, "*batch n m"]
    f: Float[Tensor, "*batch n"]
    g: Float[Tensor, "*batch m"]
    iterations: int
    residual: Float[Tensor, "*batch"]  # sum_j |(P^T 1)_j - b_j|
    tol: float

    @property
    def plan(self) -> Float[Tensor, "*batch n m"]:
        """P = exp(log P)."""
        return self.log_plan.exp()

    @property
    def converged(self) -> bool:
        """Whether every residual is within ``tol``."""
        return bool((self.residual <= self.tol).all())


class Iterate(NamedTuple):
    """Potentials after a row step, and the marginal error of their plan."""

    f: Float[Tensor, "*batch n"]
    g: Float[Tensor, "*batch m"]
    residual: Float[Tensor, "*batch"]


def sinkhorn(
    scores: Float[Tensor, "*batch n m"],
    a: Float[Tensor, "*#batch n"] | None = None,
    b: Float[Tensor, "*#batch m"] | None = None,
    *,
    mask: Mask | None = None,
    f: Float[Tensor, "*#batch n"] | None = None,
    g: Float[Tensor, "*#batch m"] | None = None,
    tol: float | None = None,
    max_iterations: int = 1000,
    omega: float = 1.0,
) -> SinkhornResult:
    r"""The coupling argmin_{P in Pi(a, b)} KL(P | e^S), by Sinkhorn's iteration, for scores of any size.

    Stops where sum_j |column sum - b_j| <= ``tol`` in the whole batch, by default 1e-9, in float32 64 of its roundings;
    or after ``max_iterations``: then ``converged`` is False and ``residual`` says what was reached. An iteration passes
    twice over all scores, and the slowest table of a batch holds up the others, so that the limit of large scores costs
    hundreds of softmaxes; ``half_steps`` makes a fixed number. ``mask`` is True where mass may go, or is added to the
    scores, such as Hugging Face's: -10^4 and less mean -inf; scores of -inf mean the same. Padding has weight 0 on both
    sides. Half precision is computed in float32. ``f`` or ``g``, such as those of a result at scores nearby, are a warm
    start; with both, f follows from g. Not differentiable: see ``sinkhorn_plan``. Source: Sinkhorn and Knopp 1967;
    over-relaxation Thibault et al. 2021.

    ValueError for weights that are negative or do not sum to 1, for a start that is not finite where there is
    weight, for a row or a column with weight but without a finite score, and for a causal mask between equal weights,
    whose one coupling is diagonal.

    >>> result = sinkhorn(torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64))
    >>> result.plan  # e^(1/2) / (1 + e^(1/2)) on the diagonal: columns as well as rows sum to one half
    tensor([[0.3112, 0.1888],
            [0.1888, 0.3112]], dtype=torch.float64)
    """
    check_count("max_iterations", max_iterations, least=0)
    check_fraction("omega", omega, below=2.0)
    with torch.no_grad():
        scores, a, b = problem(scores, a, b, mask)
        tol = _tolerance(tol, scores)
        scores, most = _less_their_most(scores)
        start = _start(scores, a, b, None if f is None else f + most, g)
        for iterations, (f, g, residual) in enumerate(iterates(scores, a, b, omega, start)):  # noqa: B007
            if iterations >= max_iterations or bool((residual <= tol).all()):
                break
        if omega != 1:  # end on rows
            f = _row_step(scores, a, g)
            residual = _missed(torch.logsumexp(scores + f.unsqueeze(-1), -2), g, b)
        return SinkhornResult(_rows(scores, a, g), f - most, g, iterations, residual, tol)


def _tolerance(tol: float | None, scores: Tensor) -> float:
    """``tol``, or the default: what no rounding of the type keeps the columns from."""
    if tol is None:
        return max(1e-9, 64 * torch.finfo(scores.dtype).eps)
    check_positive("tol", tol)
    return tol


def _start(scores: Tensor, a: Tensor, b: Tensor, f: Tensor | None, g: Tensor | None) -> Tensor | None:
    """The column potential to start from, made of ``f`` where ``g`` is not given."""
    for name, each, weights in (("f", f, a), ("g", g, b)):
        if each is not None and not bool((each.isfinite() | (weights == 0)).all()):
            raise ValueError(f"{name} is not finite where there is weight; start from a result with the same weights")
    if g is None:
        return None if f is None else _row_step(scores.mT, b, torch.where(a > 0, f.to(scores), -INF))
    return torch.where(b > 0, g.to(scores), -INF)


def iterates(
    scores: Tensor, a: Tensor, b: Tensor, omega: float = 1.0, start: Tensor | None = None
) -> Iterator[Iterate]:
    """Iterate without end: first the softmax of rows, then one item per iteration; ``start`` is g in place of ln b.

    The arguments are as ``problem`` returns them. The error of the columns costs nothing: it is read off the sums that
    the next column step needs. With omega != 1 that of the rows is added.

    >>> next(iterates(*problem(torch.zeros(2, 2), None, None))).residual
    tensor(0.)
    """
    log_a, log_b = _log(a), _log(b)
    g = log_b if start is None else start
    f, missed = _row_step(scores, a, g), 0.0
    kernel = _Kernel(scores, f, g)
    while True:
        column = kernel.log_sums(f, g, columns=True)
        yield Iterate(f, g, _missed(column, g, b) + missed)
        g = _relaxed(g, log_b - column, b, omega)
        row = kernel.log_sums(f, g, columns=False)
        f = _relaxed(f, log_a - row, a, omega)
        missed = _missed(row, f, a) if omega != 1 else 0.0


def iteration(
    f: Float[Tensor, "*batch n"],
    scores: Float[Tensor, "*batch n m"],
    a: Float[Tensor, "*#batch n"] | None = None,
    b: Float[Tensor, "*#batch m"] | None = None,
) -> Float[Tensor, "*batch n"]:
    """The potential f after one iteration: a column step, then a row step. Differentiable; ValueError as ``sinkhorn``.

    >>> iteration(torch.tensor([3.0, 0.0]), torch.zeros(2, 2)).diff()  # even scores: any start is mended at once
    tensor([0.])
    """
    scores, a, b = problem(scores, a, b)
    return _row_step(scores, a, _row_step(scores.mT, b, f))


def half_steps(
    scores: Float[Tensor, "*batch n m"],
    num: int,
    a: Float[Tensor, "*#batch n"] | None = None,
    b: Float[Tensor, "*#batch m"] | None = None,
    *,
    mask: Mask | None = None,
    detach_columns: bool = False,
) -> Float[Tensor, "*batch n m"]:
    """ln P after ``num`` half-steps, rows first: 1 is softmax attention, an odd number ends on rows.

    A single one is softmax, which needs no coupling: a causal mask is welcome there. Autograd goes through all of them.
    ``detach_columns`` cuts it at every column potential, as the text classifier of the public Sinkformer code does;
    what comes out is not the gradient. ValueError for num < 1 and as ``sinkhorn``.

    >>> half_steps(torch.tensor([[1.0, 2.0, 3.0]]), 1).exp()
    tensor([[0.0900, 0.2447, 0.6652]])
    """
    check_count("num", num)
    scores, a, b = problem(scores, a, b, mask, coupling=num > 1)
    scores, _ = _less_their_most(scores)
    g = _log(b)
    f = _row_step(scores, a, g)
    for step in range(1, num):
        if step % 2:
            g = _row_step(scores.mT, b, f)
            g = g.detach() if detach_columns else g
        else:
            f = _row_step(scores, a, g)
    return _rows(scores, a, g) if num % 2 else _rows(scores.mT, b, f).mT


def sinkhorn_symmetric(
    scores: Float[Tensor, "*batch n n"],
    a: Float[Tensor, "*#batch n"] | None = None,
    *,
    tol: float | None = None,
    max_iterations: int = 1000,
) -> SinkhornResult:
    """The plan of symmetric scores between a text and itself, with one potential: f <- (f + ln a - lse(S + f)) / 2.

    P stays symmetric all the way; ``residual`` is the error of its rows, which is that of its columns.
    Source: Feydy et al. 2019. ValueError for scores that are not symmetric, and as ``sinkhorn``.

    >>> plan = sinkhorn_symmetric(torch.tensor([[0.0, 2.0], [2.0, 1.0]])).plan
    >>> torch.equal(plan, plan.mT)
    True
    """
    check_count("max_iterations", max_iterations, least=0)
    scores, a, _ = problem(scores, a, a)
    tol = _tolerance(tol, scores)
    rounding = 16 * torch.finfo(scores.dtype).eps * float(scores.detach()[scores.isfinite()].abs().amax())
    if not torch.isclose(scores, scores.mT, rtol=0, atol=rounding).all():
        raise ValueError("the scores are not symmetric; take (S + S^T) / 2, or use sinkhorn, which needs no symmetry")
    scores = (scores + scores.mT) / 2
    with torch.no_grad():
        most = scores.amax(dim=(-2, -1), keepdim=True)
        log_a, scores = _log(a), scores - most
        f = (log_a + _row_step(scores, a, log_a)) / 2
        for iterations in range(max_iterations + 1):  # noqa: B007
            row = torch.logsumexp(scores + f.unsqueeze(-2), -1)
            residual = _missed(row, f, a)
            if bool((residual <= tol).all()):
                break
            f = torch.where(a > 0, (f + log_a - row) / 2, -INF)
        outer = f.unsqueeze(-1) + f.unsqueeze(-2)  # added up first, so that the plan is symmetric to the last bit
        f = f - most.squeeze(dim=-1) / 2
        return SinkhornResult(scores + outer, f, f, iterations, residual, tol)


def entropic_plan(
    cost: Float[Tensor, "*batch n m"],
    epsilon: float,
    a: Float[Tensor, "*#batch n"] | None = None,
    b: Float[Tensor, "*#batch m"] | None = None,
    *,
    descent: float | None = None,
    **options,
) -> SinkhornResult:
    """argmin_{P in Pi(a, b)} <C, P> + epsilon KL(P | a b^T): entropic transport at temperature ``epsilon``.

    A cold plan takes many iterations from nothing. With ``descent``, such as 1/2, the temperature falls by this factor
    from about the largest cost to ``epsilon``, and each stage starts from the potentials of the one before;
    ``iterations`` counts all stages. ValueError for epsilon <= 0, for a descent outside (0, 1), and where epsilon is so
    small that the rounding of C / epsilon alone could move ln P by more than 0.1: the message names the smallest epsilon for the dtype.

    >>> entropic_plan(torch.eye(2), 0.1).plan  # the assignment that costs nothing
    tensor([[2.2699e-05, 4.9998e-01],
            [4.9998e-01, 2.2699e-05]])
    """
    check_positive("epsilon", epsilon)
    exact = cost.dtype if cost.dtype in (torch.float32, torch.float64) else torch.float32
    finite = cost.detach()[torch.isfinite(cost)].abs()  # none: ``sinkhorn`` raises
    largest = float(finite.amax()) if finite.numel() else 0.0
    least = 10 * torch.finfo(exact).eps * largest
    if epsilon < least:
        raise ValueError(f"epsilon = {epsilon:.3g} is lost in the rounding of {exact}; give at least {1.1 * least:.2g}")
    temperatures, found, spent = [epsilon], None, 0
    if descent is not None:
        check_fraction("descent", descent)
        _, _, weights = problem(cost.detach().to(exact), a, b)  # a cost of +inf, where no mass may go, is refused here
        log_b = _log(weights)
        while temperatures[0] < descent * largest:
            temperatures.insert(0, temperatures[0] / descent)
    for before, each in zip([epsilon, *temperatures], temperatures, strict=False):
        start = None if found is None else log_b + (before / each) * (found.g - log_b).nan_to_num(0.0)
        stage = options if each == epsilon else options | {"tol": 1e-2}
        found = sinkhorn(-cost / each, a, b, **{"g": start} | stage)
        spent += found.iterations
    return found._replace(iterations=spent)


def problem(
    scores: Tensor, a: Tensor | None, b: Tensor | None, mask: Tensor | None = None, coupling: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, a and b checked, in one dtype and broadcast to one batch; ValueError as ``sinkhorn`` says.

    Without ``coupling`` each row needs a finite score, and no more.

    >>> [each.shape for each in problem(torch.zeros(5, 2, 3), None, None)]
    [torch.Size([5, 2, 3]), torch.Size([5, 2]), torch.Size([5, 3])]
    """
    scores = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -INF)
    elif mask is not None:
        scores = scores + mask.masked_fill(mask <= NEVER, -INF)
    least, largest = scores.detach().aminmax()  # NaN if there is one
    if not largest < INF:
        raise ValueError("the scores or the mask have NaN or +inf; give finite numbers, and -inf where no mass may go")
    n, m = scores.shape[-2:]
    a, b = (_weights(*each, scores) for each in (("a", a, n), ("b", b, m)))
    if mask is not None or least == -INF:
        _check_support(scores.detach(), a.detach(), b.detach(), coupling)
    absent = (a == 0).unsqueeze(-1) | (b == 0).unsqueeze(-2)
    if bool(absent.any()):  # no plan sees these scores; -inf in all of a row would give NaN as derivative
        scores = scores.masked_fill(absent, 0.0)
    return scores, a, b


def _weights(name: str, weights: Tensor | None, length: int, scores: Tensor) -> Tensor:
    shape = (*scores.shape[:-2], length)
    if weights is None:
        return scores.new_full(shape, 1 / length)
    rounding = torch.finfo(weights.dtype).eps if weights.is_floating_point() else 0.0
    weights = weights.to(scores)
    if not bool((weights >= 0).all()):
        raise ValueError(f"{name} has a weight that is negative or NaN; give weights >= 0")
    total = weights.detach().sum(dim=-1).flatten()
    worst = total[(total - 1).abs().argmax()]
    if float((worst - 1).abs()) > length * 8 * max(rounding, torch.finfo(weights.dtype).eps):
        raise ValueError(f"{name} sums to {float(worst):.6g}; divide it by its sum, so that it sums to 1")
    return weights.expand(shape)


def _check_support(scores: Tensor, a: Tensor, b: Tensor, coupling: bool) -> None:
    """Where scores are -inf: ValueError if rows, columns or a triangle tell that no coupling lives on the rest."""
    there = (scores > -INF) & (a > 0).unsqueeze(-1) & (b > 0).unsqueeze(-2)
    sides = (("row", there.any(dim=-1), a), ("column", there.any(dim=-2), b))
    for side, found, weights in sides if coupling else sides[:1]:
        bad = (~found & (weights > 0)).nonzero()
        if len(bad):
            raise ValueError(
                f"{side} {bad[0, -1].item()} has weight, but all its scores are -inf, so no coupling exists; "
                f"give it a finite score, or padding a weight of 0 on both sides: keep / keep.sum(dim=-1, keepdim=True)"
            )
    if coupling and scores.shape[-2] == scores.shape[-1]:
        upper, lower = (each.flatten(-2).any(dim=-1) for each in (there.triu(1), there.tril(-1)))
        ahead, slack = (a - b).cumsum(dim=-1), 64 * a.shape[-1] * torch.finfo(a.dtype).eps
        equal = (ahead.abs() <= slack).all(dim=-1)
        there = there | ((a == 0) & (b == 0)).unsqueeze(-1)  # tokens of weight zero need no diagonal
        whole = there.diagonal(dim1=-2, dim2=-1).all(dim=-1)
        if bool(((upper ^ lower) & equal & whole).any()):
            raise ValueError(
                "a causal mask between equal weights: the last column may take mass from the last row alone, and so "
                "on upwards, so the only coupling is diagonal ('What equal weights forbid'); use softmax, or no mask"
            )
        short = ~upper & (ahead > slack).any(dim=-1) | ~lower & (ahead < -slack).any(dim=-1)
        if bool((short | (upper ^ lower) & equal & ~whole).any()):
            raise ValueError(
                "no coupling lives on this triangle of pairs: some first tokens of one text weigh more than all that "
                "they may be coupled with ('What equal weights forbid'); use softmax, or no mask"
            )


def _log(weights: Tensor) -> Tensor:
    """ln w, -inf for a weight of 0, through which no derivative goes."""
    return torch.where(weights > 0, weights.clamp(min=torch.finfo(weights.dtype).tiny).log(), -INF)


class _Kernel:
    """Log sums of S + f over each column and of S + g over each row, by products with K = e^(S + F + G).

    Entries that underflow in K add less than n max(e^(f - F)) tiny to a sum. Where that is not below the rounding of
    every sum, F and G move to f and g; where it still is not, logsumexp is called. It is also called for tables of less
    than LARGE entries, where it is as fast, and in float32, where products would hide that a small ``tol`` is missed.
    Source: Schmitzer 2019, section 3.
    """

    LARGE = 8192

    def __init__(self, scores: Tensor, f: Tensor, g: Tensor) -> None:
        self.scores = scores
        self.used = scores.dtype == torch.float64 and scores.shape[-2] * scores.shape[-1] >= self.LARGE
        if self.used:
            self._move(f, g)

    def _move(self, f: Tensor, g: Tensor) -> None:
        self.F, self.G = (each.nan_to_num(neginf=0.0) for each in (f, g))  # -inf where the weight is 0
        self.K = (self.scores + self.F.unsqueeze(-1) + self.G.unsqueeze(-2)).exp()

    def log_sums(self, f: Tensor, g: Tensor, *, columns: bool) -> Tensor:
        """ln sum_i e^(S_ij + f_i), (..., m), or ln sum_j e^(S_ij + g_j), (..., n)."""
        new, facts = f if columns else g, torch.finfo(f.dtype)
        for moved in (False, True) if self.used else ():
            if moved:
                self._move(f, g)
            K, old, other = (self.K.mT, self.F, self.G) if columns else (self.K, self.G, self.F)
            factors = (new - old).exp()
            sums = (K @ factors.unsqueeze(-1)).squeeze(-1)
            lost = K.shape[-1] * facts.tiny * factors.amax()
            if bool((lost < facts.eps * sums.amin()) & (sums.amax() < INF)):
                return sums.log() - other
        return torch.logsumexp((self.scores.mT if columns else self.scores) + new.unsqueeze(-2), -1)


def _less_their_most(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The scores less the largest of each row, and that: f alone sees it, and sums far from 0 would round it away."""
    most = scores.detach().amax(dim=-1)
    most = torch.where(most > -INF, most, 0.0)
    return scores - most.unsqueeze(-1), most


def _rows(scores: Tensor, a: Tensor, g: Tensor) -> Tensor:
    """ln P after a row step: rows sum to a to rounding, however large the scores are."""
    return (scores + g.unsqueeze(-2)).log_softmax(dim=-1) + _log(a).unsqueeze(-1)


def _row_step(scores: Tensor, a: Tensor, g: Tensor) -> Tensor:
    """f = ln a - lse_j(S + g), -inf where a = 0."""
    row = torch.logsumexp(scores + g.unsqueeze(-2), -1)
    return torch.where(a > 0, _log(a) - row, -INF)


def _relaxed(old: Tensor, new: Tensor, weights: Tensor, omega: float) -> Tensor:
    """(1 - omega) old + omega new; -inf where the weight is 0, as ``new`` is: log sums are finite after ``problem``."""
    return new if omega == 1 else torch.where(weights > 0, torch.lerp(old, new, omega), -INF)


def _missed(sums: Tensor, potential: Tensor, weights: Tensor) -> Tensor:
    """sum |marginal - weights| of the plan whose log sums before the potential (-inf where the weight is 0) are ``sums``."""
    return ((sums + potential).exp() - weights).abs().sum(dim=-1)
