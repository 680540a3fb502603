"""The first half of the ledger, one layer and chains over depth, and the shorthands that both halves use.

Statements of version 1 of the paper reached us through a third-party formalisation; their source is ``digest``.
"""

from derived.lab.claims import Claim

from . import depth
from . import experiments as ex
from . import measures as of

CI, BOTH, CPU = {"ci": "holds"}, {"ci": "holds", "cpu": "holds"}, {"cpu": "holds"}
FAILS = {"ci": "fails", "cpu": "fails"}
INF = float("inf")
RECORDED = ("cpu", "gpu")


def row(id: str, statement: str, criterion: str, experiment, measure, accept: tuple[float, float], **facts) -> Claim:
    """A statistic of ours, unless ``facts`` say otherwise."""
    facts = {"source": "ours", "where": "–", "paper_value": "–", "expected": BOTH, "kind": "statistic"} | facts
    return Claim(
        id=id,
        statement=statement,
        criterion=criterion,
        experiment=experiment,
        measure=measure,
        accept=accept,
        **facts,
    )


def retold(label: str, value: str = "–") -> dict[str, str]:
    """The source of a statement of version 1, by its label."""
    return {"source": "digest", "where": f"version 1, {label}", "paper_value": value}


WITHIN = "99.9 % interval within"

ONE_LAYER = (
    row(
        "HT-1.a",
        r"One token decays at the rates $\frac{d-1}{2d}$ (overlap) and $1$ (its square).",
        r"rates of one layer, extrapolated to $h=0$, over the formula within $1\pm0.0005$",
        ex.OneToken,
        of.rate_gap,
        (0.9995, 1.0005),
        expected=CI,
    ),
    row(
        "HT-1.b",
        r"Its error at fixed $\tau$ is of first order in $h=\eta^2/H$.",
        r"halving $h$ divides the error by $2\pm0.1$, at every width, step and degree",
        ex.OneToken,
        of.halving,
        (1.9, 2.1),
        expected=CI,
    ),
    row(
        "HT-2.a",
        r"Gaussian heads have no mean field: $b_*=0$.",
        rf"{WITHIN} $\pm0.02$",
        ex.HeadMoments,
        of.head_moment(["mean"]),
        (-0.02, 0.02),
        **retold("Gaussian case"),
    ),
    row(
        "HT-2.b",
        r"$\mathbb E[B(x)B(y)^\top]=\frac1ds(x,y)\,I$.",
        rf"$d$ times diagonal and off-diagonal entries, less $s$ and $0$: {WITHIN} $\pm0.04$",
        ex.HeadMoments,
        of.head_moment(["diagonal", "off-diagonal"]),
        (-0.04, 0.04),
        **retold("`lem:lemma_app`"),
    ),
    row(
        "HT-2.c",
        r"$\mathbb E\lVert G\rVert^2=\frac{d-1}d$ where all tokens coincide.",
        rf"{WITHIN} $\pm0.02$ of it",
        ex.HeadMoments,
        of.head_moment(["proxy"], ["coinciding"]),
        (-0.02, 0.02),
        **retold("Gaussian case"),
    ),
    row(
        "HT-2.d",
        r"Elsewhere $\mathbb E\lVert G\rVert^2$ is smaller, so $\varsigma^2=\frac{d-1}d$.",
        r"at random tokens the 99.9 % interval of the difference lies below $-0.05$",
        ex.HeadMoments,
        of.proxy_below,
        (-INF, -0.05),
        **retold("Gaussian case"),
    ),
    row(
        "HT-3.a",
        r"The drift of an overlap is $\frac{d-2+R^2}ds_{ij}-\frac{d-1}{2d}R(s_{ii}+s_{jj})$.",
        rf"difference over the largest drift, worst pair: {WITHIN} $\pm0.02$",
        ex.OneLayer,
        of.layer_gap("drift", "drift_theory", "random"),
        (-0.02, 0.02),
        **retold("`lem:Ito_formula`"),
    ),
    row(
        "HT-3.b",
        r"Its bracket is $\frac1d(1-R^2)(s_{ii}+s_{jj}-2Rs_{ij})$.",
        rf"difference over the largest bracket, worst pair: {WITHIN} $\pm0.03$",
        ex.OneLayer,
        of.layer_gap("bracket", "bracket_theory", "random"),
        (-0.03, 0.03),
    ),
    row(
        "HT-4.a",
        r"On the simplex the drift is exactly $b(\gamma)=(1-\gamma)(\gamma(1-f)+g)$.",
        rf"at $d=4$, relative difference: {WITHIN} $\pm0.03$",
        ex.OneLayer,
        of.layer_gap("drift", "retold", "simplex"),
        (-0.03, 0.03),
        expected=FAILS,
        **retold("`lem:drift_on_simplex_selfcontained`", "exactly $b$"),
    ),
    row(
        "HT-4.b",
        r"The drift on the simplex is $b+\frac1d(\gamma P-(2-\gamma^2)S)$.",
        rf"at $d=4$, relative difference: {WITHIN} $\pm0.03$",
        ex.OneLayer,
        of.layer_gap("drift", "drift_theory", "simplex"),
        (-0.03, 0.03),
        amends="HT-4.a",
    ),
)

CHAINS = (
    row(
        "HT-5.a",
        r"The chain tends to the diffusion: $\mathbb ER$ of two tokens over $\tau$, for $H=1,2,6$, hot and cold.",
        rf"chain less Fokker–Planck equation, worst case: {WITHIN} $\pm0.035$",
        depth.TwoTokens,
        of.difference("first", "first_theory", ("logit_std", "H", "tau")),
        (-0.035, 0.035),
        **retold("`thm:weak_error_clean`, `cor:weak_error_centered`"),
    ),
    row(
        "HT-5.b",
        r"The same for $\mathbb ER^2$.",
        rf"{WITHIN} $\pm0.035$",
        depth.TwoTokens,
        of.difference("second", "second_theory", ("logit_std", "H", "tau")),
        (-0.035, 0.035),
        **retold("`thm:weak_error_clean`, `cor:weak_error_centered`"),
    ),
    row(
        "HT-6.a",
        r"The weak error decreases with the step.",
        r"two tokens at logit deviation 2, error at $\eta=0.8$ over that at $0.4$: 99.9 % interval above 2",
        depth.WeakError,
        of.error_ratio((0.8, 1), (0.4, 1)),
        (2.0, INF),
        **retold("`thm:weak_error_clean`", r"$O(\eta)$"),
    ),
    row(
        "HT-6.b",
        r"At fixed $\tau$ and $\eta$ more heads make it smaller; as retold the bound grows with $H$.",
        r"the same at $\eta=0.8$: error with one head over that with four, 99.9 % interval above 2",
        depth.WeakError,
        of.error_ratio((0.8, 1), (0.8, 4)),
        (2.0, INF),
    ),
    row(
        "HT-7",
        r"Hot attention: the mean overlap is logistic, $\dot u=u(1-u)$.",
        rf"$n=8$, $d=256$, at all times: {WITHIN} $\pm0.03$",
        depth.Hot,
        of.pointwise("m", "u", ("tau",), "d == 256"),
        (-0.03, 0.03),
        **retold("`thm:clustering_small_beta`"),
    ),
    row(
        "HT-8.a",
        r"An equiangular prompt follows the ODE of the simplex at any temperature.",
        rf"$n=16$, logit deviation 8, $d=4096$, at all times: {WITHIN} $\pm0.03$",
        depth.Cold,
        of.pointwise("gamma", "gamma_theory", ("tau",), "d == 4096"),
        (-0.03, 0.03),
        expected=CPU,
        judged_at=RECORDED,
        **retold("`thm:clustering_random_init`"),
    ),
    row(
        "HT-8.b",
        r"From $d=64$ to $d=256$ the overlaps at $\tau=2$ spread around it like $d^{-1/2}$.",
        rf"slope of ln spread in $\ln d$: {WITHIN} $-0.5\pm0.1$",
        depth.Cold,
        of.spread_slope,
        (-0.6, -0.4),
        judged_at=("ci", "cpu"),
        where="narrowed to one early time and small widths after rows existed",
        amends="HT-8.e",
    ),
    row(
        "HT-8.e",
        r"The overlaps spread around it like $\sqrt{T/d}$, at all times and widths.",
        rf"slope of ln spread in $\ln d$ over all widths, at the time where it is farthest off: {WITHIN} $-0.5\pm0.1$",
        depth.Cold,
        of.spread_slopes,
        (-0.6, -0.4),
        judged_at=("ci", "cpu"),
        expected={"ci": "undecided", "cpu": "undecided"},
        **retold("`thm:clustering_random_init`; its criterion decided after rows existed", r"$\sqrt{T/d}$"),
    ),
    row(
        "HT-8.c",
        r"$\lvert s_{ij}(R)-s_{ij}(R')\rvert\le(1+9\tau_\ell^2)\max_{kl}\lvert R_{kl}-R'_{kl}\rvert$ "
        r"for every number $n\le d$ of tokens.",
        "largest quotient of pairs of prompts, random or simplices, plus five standard errors, over the constant: at "
        "most 1",
        ex.Lipschitz,
        of.gap,
        (-INF, 1.0),
        kind="bound",
        proof="ht-lipschitz",
        where="simplices and the hottest case added after rows of random prompts existed",
        amends="HT-8.d",
    ),
    row(
        "HT-8.d",
        r"The Lipschitz constant of $s$ in the Gram matrix is $O(1+\tau_\ell^2n)$.",
        r"power of $n$ with which the largest quotient of sampled pairs of prompts grows",
        ex.Lipschitz,
        of.quotient_slope,
        (-INF, INF),
        kind="measured",
        expected={},
        **retold("`lem:Gram_stability`", r"$O(1+\tau_\ell^2n)$"),
    ),
    row(
        "HT-9.a",
        r"Cold attention delays the collapse by what the ODE says.",
        rf"time to overlap $\frac12$, chain over ODE, $d=10^6$: {WITHIN} $1\pm0.05$",
        depth.Freezing,
        of.time_ratio,
        (0.95, 1.05),
    ),
    row(
        "HT-9.b",
        r"At standard initialisation, $\tau_\ell=1$, temperature is irrelevant: the time is $\ln(n+1)$.",
        r"ODE over $\ln(n+1)$ within $1\pm0.02$ for every $n$",
        depth.Freezing,
        of.standard_over_hot,
        (0.98, 1.02),
    ),
    row(
        "HT-9.c",
        r"Lower temperature and longer contexts slow the collapse down.",
        r"the time of the ODE grows from each logit deviation and each $n$ to the next",
        depth.Freezing,
        of.smallest_delay,
        (1e-6, INF),
        source="paper",
        where="abstract; judged in the ODE of the simplex, which is our reading",
    ),
    row(
        "HT-9.d",
        r"A higher dimension slows cold, near-uniform tokens down.",
        r"drift of the overlap of a pair in a uniform cloud at $\beta=\infty$, $d=40$ over $d=24$, larger of two "
        "overlaps: 99.9 % interval below 0.75",
        ex.SlowDrift,
        of.drift_by_width,
        (-INF, 0.75),
        where="after the abstract, which has collapse: this drift pulls towards 0; decided after its rows existed",
        expected=CPU,
        judged_at=RECORDED,
    ),
    row(
        "HT-10",
        r"Every collapse ends at the rate $1-\frac1d$, whatever $\beta$ and $n$.",
        rf"slope of $\ln(1-m)$ plus $1-\frac1d$, worst case: {WITHIN} $\pm0.05$",
        depth.FinalRate,
        of.final_rate,
        (-0.05, 0.05),
    ),
)
