"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

p, q      distributions of draft and verifier           (V,)
q_n       the verifier's probability of the drafted token
delta     budget
gamma     the target's probability of the drafted token
"""

from functools import partial

import numpy as np
import torch

from derived.lab.exercises import FLOAT32, ask, checker, close, holds, ranges

from .model import divergences, exact, rules, theory


def _pair(generator: torch.Generator) -> dict:
    """Distributions of two to six tokens, in half of the draws one has a zero, and a budget of at most 1."""
    some = partial(torch.randint, size=(), generator=generator)
    num_tokens = int(some(2, 7))
    draws = torch.rand(2, num_tokens, generator=generator, dtype=torch.float64).log().square()  # uneven: gamma < p
    weights = (draws / draws.sum(dim=-1, keepdim=True)).mul(100).round().clamp(min=1)
    if some(0, 2):
        weights[some(0, min(num_tokens, 3) - 1), some(0, num_tokens)] = 0  # of two tokens the verifier's keep both
    p, q = weights
    delta = torch.rand((), generator=generator).mul(100).round().item() / 100
    return {"p": (p / p.sum()).numpy(), "q": (q / q.sum()).numpy(), "delta": delta}


P, Q = torch.tensor([0.25, 0.75, 0.0], dtype=torch.float64), torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)


def _replacement():
    rejected = exact.emission(P, Q, rules.SpS()).rejected
    return rejected / rejected.sum()


by_hand = (
    close(
        lambda: exact.acceptance_rate(P, Q, rules.SpS()),
        mistakes={
            "min(1, q/p) is the rate of one token, and the other is drafted too": 1 / 3,
            "tokens that the draft never writes are never kept": 0.75,
        },
    ),
    close(
        _replacement,
        mistakes={
            "it is not normalised": (0.25, 0.0, 0.25),
            "(p - q)_+ in place of (q - p)_+": (0.0, 1.0, 0.0),
        },
    ),
)

total_variation = close(
    lambda q_n, delta: divergences.gamma_constrained(q_n, delta, "tv"),
    ranges(q_n=(0.05, 0.95), delta=(0.02, 0.6)),
    mistakes={
        "a probability stops somewhere": lambda q_n, delta: q_n + delta,
        "that is the second-order rule for KL": lambda q_n, delta: theory.gamma_cactus(q_n, delta),
    },
)


def _at_most_one_and_at_least_q(gamma, q_n, delta):
    found = ask(gamma, q_n=q_n, delta=delta)
    if not found <= 1:
        return f"gamma is {found:.4g}, above 1"
    return f"gamma is {found:.4g}, below q_n" if found < q_n else None


def _spends_its_chi_square(gamma, q_n, delta):
    """`cac-rule`: the rule is exact for chi-square at most 2 delta, and stops at 1 where that is cheaper."""
    found = ask(gamma, q_n=q_n, delta=delta)
    off = (found - q_n) ** 2 / (q_n * (1 - q_n)) / (2 * delta) - 1
    if off > FLOAT32:
        return f"the chi-square of its target is beyond 2 delta, by {off:.2g} of it"
    if found < 1 and off < -FLOAT32:
        return f"the chi-square of its target is short of 2 delta, by {-off:.2g} of it, though gamma is below 1"
    return None


def _inert_when_certain(gamma, delta):
    """Where the verifier is certain, no budget changes anything."""
    found = [float(ask(gamma, q_n=q_n, delta=delta)) for q_n in (0.0, 1.0)]
    return None if found == [0.0, 1.0] else f"at q_n = 0 and 1 gamma is {found[0]:.4g} and {found[1]:.4g}"


raised_probability = holds(
    (_at_most_one_and_at_least_q, _spends_its_chi_square, _inert_when_certain),
    ranges(q_n=(0.02, 0.98), delta=(0.01, 1.0)),
    mistakes={
        "no cap": lambda q_n, delta: q_n + (2 * delta * q_n * (1 - q_n)) ** 0.5,
        "delta under no root": lambda q_n, delta: min(q_n + 2 * delta * (q_n * (1 - q_n)) ** 0.5, 1),
    },
)


def _emits(law, p, q, delta):
    return ask(law, p.shape, p=p, q=q, delta=delta)


def _exact_without_a_budget(law, p, q):
    """`cac-sps`: at delta = 0 the verifier's own distribution is emitted."""
    off = abs(_emits(law, p, q, 0.0) - q).max()
    return f"at delta = 0 a probability is {off:.2g} off the verifier's" if off > FLOAT32 else None


def _between_draft_and_verifier(law, p, q, delta):
    """`cac-sandwich`: min(p, q) <= o <= max(p, q) at every token."""
    emitted = _emits(law, p, q, delta)
    out = max((emitted - np.maximum(p, q)).max(), (np.minimum(p, q) - emitted).max())
    return f"a token is {out:.2g} outside of draft and verifier" if out > FLOAT32 else None


def _token_by_token(law, p, q, delta):
    """Kept and replaced drafts counted one by one, each drafted token with its own target."""
    raised = (q + (2 * delta) ** 0.5 * np.sqrt(q - q**2)).clip(max=1.0)
    counted = np.minimum(p, raised)
    for n in np.flatnonzero(p > raised):
        h = np.where(np.arange(len(q)) == n, raised[n], (1 - raised[n]) / (1 - q[n]) * q)
        beyond = (h - p).clip(min=0)
        counted = counted + (p[n] - raised[n]) * beyond / beyond.sum()
    emitted = _emits(law, p, q, delta)
    worst = int(abs(emitted - counted).argmax())
    if abs(emitted - counted)[worst] <= FLOAT32:
        return None
    return f"token {worst + 1} has probability {emitted[worst]:.4g} in yours, and counting draft by draft gives another"


def _of_rule(rule):
    return lambda p, q, delta: exact.output_law(torch.as_tensor(p), torch.as_tensor(q), rule(delta))


class FromShortfall(rules.Cactus):
    """Recovers from (q - p)_+, as exact sampling does, in place of (h - p)_+: sandwich and price still hold."""

    def scale(self, q_n, gamma, *summaries):
        return torch.ones_like(gamma)


emitted_law = holds(
    (_exact_without_a_budget, _between_draft_and_verifier, _token_by_token),
    _pair,
    mistakes={
        "recovery from (q - p)_+": _of_rule(FromShortfall),
        "every draft is replaced by a draw from its target": lambda p, q, delta: (
            p @ divergences.all_targets(torch.as_tensor(q), theory.gamma_cactus(q, delta)).numpy()
        ),
    },
)

EXERCISES = {
    "cac-ex-hand": by_hand,
    "cac-ex-tv": total_variation,
    "cac-ex-rule": raised_probability,
    "cac-ex-law": emitted_law,
}
check = checker(EXERCISES)
