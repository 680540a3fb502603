"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

p, q      laws of draft and verifier           (V,)
q_n       the verifier's probability of the drafted token
delta     budget
gamma     the target's probability of the drafted token
"""

from functools import partial

import numpy as np
import torch

from derived.lab.exercises import FLOAT32, Derive, Implement, ask, checker, ranges

from .model import divergences, exact, mutations, rules, theory


def _pair(generator: torch.Generator) -> dict:
    """Two laws of two to six tokens, in half of the draws with a zero in one of them, and a budget of at most 1."""
    some = partial(torch.randint, size=(), generator=generator)
    num_tokens = int(some(2, 7))
    draws = torch.rand(2, num_tokens, generator=generator, dtype=torch.float64).log().square()  # uneven: gamma < p
    laws = (draws / draws.sum(dim=-1, keepdim=True)).mul(100).round().clamp(min=1)
    if some(0, 2):
        laws[some(0, min(num_tokens, 3) - 1), some(0, num_tokens)] = 0  # of two tokens the verifier's keep both
    p, q = laws
    delta = torch.rand((), generator=generator).mul(100).round().item() / 100
    return {"p": (p / p.sum()).numpy(), "q": (q / q.sum()).numpy(), "delta": delta}


# By hand ------------------------------------------------------------------------------------------------------------

P, Q = torch.tensor([0.25, 0.75, 0.0], dtype=torch.float64), torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)


def _replacement():
    rejected = exact.emission(P, Q, rules.SpS()).rejected
    return rejected / rejected.sum()


by_hand = (
    Derive(
        lambda: exact.acceptance_rate(P, Q, rules.SpS()),
        mistakes={
            "min(1, q/p) is the rate of one token, and the other is drafted too": 1 / 3,
            "tokens that the draft never writes are never kept": 0.75,
            "a mean of the two rates has to be weighed by how often each token is drafted": 2 / 3,
        },
    ),
    Derive(
        _replacement,
        mistakes={
            "it is not normalised": (0.25, 0.0, 0.25),
            "what the draft has given already is taken off the verifier's law": (0.5, 0.25, 0.25),
            "(p - q)_+ in place of (q - p)_+": (0.0, 1.0, 0.0),
        },
    ),
)

# Other targets ------------------------------------------------------------------------------------------------------

total_variation = Derive(
    lambda q_n, delta: divergences.gamma_constrained(q_n, delta, "tv"),
    ranges(q_n=(0.05, 0.95), delta=(0.02, 0.6)),
    high=1,
    mistakes={
        "a probability stops somewhere": lambda q_n, delta: q_n + delta,
        "what token n gains the others lose, and the distance has a half in front": lambda q_n, delta: min(
            q_n + delta / 2, 1
        ),
        "that is the second-order rule for KL": lambda q_n, delta: theory.gamma_cactus(q_n, delta),
        "the budget has dropped out": lambda q_n, delta: min(q_n + 0.1, 1),
        "the budget is spent on all tokens, rare or not: nothing multiplies q": lambda q_n, delta: min(
            (1 + delta) * q_n, 1
        ),
    },
)


def _rate_of_interpolation(alpha, tv):
    """Two tokens, a certain verifier, and a draft at that distance from it."""
    p, q = torch.tensor([1 - tv, tv], dtype=torch.float64), torch.tensor([1.0, 0.0], dtype=torch.float64)
    return exact.acceptance_rate(p, q, rules.Interp(alpha))


interpolation = Derive(
    _rate_of_interpolation,
    ranges(alpha=(0.05, 0.95), tv=(0.05, 0.95)),
    low=0,
    high=1,
    mistakes={
        "alpha has dropped out": lambda alpha, tv: 1 - 0.7 * tv,
        "that is exact sampling": lambda alpha, tv: 1 - tv,
        "at alpha = 1 every draft should be kept": lambda alpha, tv: 1 - alpha * tv,
        "that is what is rejected": lambda alpha, tv: (1 - alpha) * tv,
    },
)

neyman = Derive(
    lambda q_n, delta: divergences.gamma_constrained(q_n, delta, "neyman"),
    ranges(q_n=(0.05, 0.9), delta=(0.05, 2.0)),
    low=0,
    high=1,
    mistakes={
        "that is Pearson's, with q in the denominator": lambda q_n, delta: divergences.gamma_constrained(
            q_n, delta, "chi2"
        ),
        "of two roots it is the other one": lambda q_n, delta: (
            (q_n + delta / 2 - (delta**2 / 4 + delta * q_n * (1 - q_n)) ** 0.5) / (1 + delta)
        ),
        "the other tokens pay as well": lambda q_n, delta: q_n + delta / 2 + (delta**2 / 4 + delta * q_n) ** 0.5,
    },
)

# Implement ----------------------------------------------------------------------------------------------------------


def _at_most_one_and_at_least_q(gamma, q_n, delta):
    found = ask(gamma, q_n=q_n, delta=delta)
    if not found <= 1:
        return f"gamma is {found:.4g}, above 1"
    return f"gamma is {found:.4g}, below q_n" if found < q_n else None


def _spends_its_chi_square(gamma, q_n, delta):
    """`cac-chi2`: the rule is exact for chi-square at most 2 delta, and stops at 1 where that is cheaper."""
    found = ask(gamma, q_n=q_n, delta=delta)
    off = (found - q_n) ** 2 / (q_n * (1 - q_n)) / (2 * delta) - 1
    if off > FLOAT32:
        return f"the chi-square of its target is beyond 2 delta, by {off:.2g} of it"
    if found < 1 and off < -FLOAT32:
        return f"the chi-square of its target is short of 2 delta, by {-off:.2g} of it, though gamma is below 1"
    return None


def _inert_when_certain(gamma, delta):
    """`cac-limits`: where the verifier is certain, no budget changes anything."""
    found = [float(ask(gamma, q_n=q_n, delta=delta)) for q_n in (0.0, 1.0)]
    return None if found == [0.0, 1.0] else f"at q_n = 0 and 1 gamma is {found[0]:.4g} and {found[1]:.4g}"


raised_probability = Implement(
    (_at_most_one_and_at_least_q, _spends_its_chi_square, _inert_when_certain),
    ranges(q_n=(0.02, 0.98), delta=(0.01, 1.0)),
    mistakes={
        "no square root": lambda q_n, delta: mutations.NoSquareRoot(delta).gamma(q_n, torch.tensor(q_n)),
        "no cap": lambda q_n, delta: q_n + (2 * delta * q_n * (1 - q_n)) ** 0.5,
        "the factor 2 is lost": lambda q_n, delta: min(q_n + (delta * q_n * (1 - q_n)) ** 0.5, 1),
        "1 - q_n is lost": lambda q_n, delta: min(q_n + (2 * delta * q_n) ** 0.5, 1),
        "delta under no root": lambda q_n, delta: min(q_n + 2 * delta * (q_n * (1 - q_n)) ** 0.5, 1),
        "the exact root for KL": lambda q_n, delta: divergences.gamma_constrained(q_n, delta, "kl"),
    },
)


def _law_of(law, p, q, delta):
    return ask(law, p.shape, p=p, q=q, delta=delta)


def _is_a_law(law, p, q, delta):
    emitted = _law_of(law, p, q, delta)
    if emitted.min() < -FLOAT32:
        return f"the least of the probabilities is {emitted.min():.4g}"
    return f"the probabilities add up to {emitted.sum():.5g}" if abs(emitted.sum() - 1) > FLOAT32 else None


def _exact_without_a_budget(law, p, q):
    """`cac-sps`: at delta = 0 the emitted law is the verifier's."""
    off = abs(_law_of(law, p, q, 0.0) - q).max()
    return f"at delta = 0 a probability is {off:.2g} off the verifier's" if off > FLOAT32 else None


def _between_draft_and_verifier(law, p, q, delta):
    """`cac-sandwich`: min(p, q) <= h_alg <= max(p, q) at every token."""
    emitted = _law_of(law, p, q, delta)
    out = max((emitted - np.maximum(p, q)).max(), (np.minimum(p, q) - emitted).max())
    return f"a token is {out:.2g} outside of draft and verifier" if out > FLOAT32 else None


def _pays_its_price(law, p, q, delta):
    """`cac-price`: TV(h_alg, q) is the acceptance gained."""
    spent = abs(_law_of(law, p, q, delta) - q).sum() / 2
    gained = np.minimum(p, _raised(q, delta)).sum() - np.minimum(p, q).sum()
    off = abs(spent - gained)
    return f"the total variation spent is {off:.2g} off the acceptance gained" if off > FLOAT32 else None


def _token_by_token(law, p, q, delta):
    """`cac-sps` for each drafted token with its own target: kept and replaced drafts counted one by one."""
    counted = np.zeros(len(p))
    for n, raised in enumerate(_raised(q, delta)):
        h = np.where(np.arange(len(q)) == n, raised, (1 - raised) / (1 - q[n]) * q)
        beyond = (h - p).clip(min=0)
        counted[n] += min(p[n], raised)
        counted += max(p[n] - raised, 0.0) * beyond / max(beyond.sum(), 1e-300)
    emitted = _law_of(law, p, q, delta)
    worst = int(abs(emitted - counted).argmax())
    if abs(emitted - counted)[worst] <= FLOAT32:
        return None
    return f"token {worst + 1} has probability {emitted[worst]:.4g} in yours, and counting draft by draft gives another"


def _raised(q, delta):
    """The positive root of x^2 = 2 delta q (1 - q), above q, and at most 1."""
    return (q + (2 * delta) ** 0.5 * np.sqrt(q - q**2)).clip(max=1.0)


def _changed(rule):
    return lambda p, q, delta: exact.output_law(torch.as_tensor(p), torch.as_tensor(q), rule(delta))


emitted_law = Implement(
    (_is_a_law, _exact_without_a_budget, _between_draft_and_verifier, _pays_its_price, _token_by_token),
    _pair,
    mistakes={
        "recovery from (q - p)_+": _changed(mutations.WholeGamma),
        "no square root": _changed(mutations.NoSquareRoot),
        "recovery from q": _changed(mutations.FromVerifier),
        "the draft's probability is raised": _changed(mutations.RaiseDraft),
        "every draft is replaced by a draw from its target": lambda p, q, delta: exact.mixture_of_targets(
            torch.as_tensor(p), torch.as_tensor(q), rules.Cactus(delta)
        ),
        "rejected drafts are forgotten": lambda p, q, delta: np.minimum(p, _raised(q, delta)),
        "what is kept is normalised": lambda p, q, delta: (
            np.minimum(p, _raised(q, delta)) / np.minimum(p, _raised(q, delta)).sum()
        ),
    },
)

EXERCISES = {
    "cac-ex-hand": by_hand,
    "cac-ex-tv": total_variation,
    "cac-ex-interp": interpolation,
    "cac-ex-neyman": neyman,
    "cac-ex-rule": raised_probability,
    "cac-ex-law": emitted_law,
}
check = checker(EXERCISES)
