"""Bad input: each error says what was given, why it is wrong and what would be right."""

import math

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.cactus.model import divergences, exact, theory
from derived.papers.cactus.model.laws import as_probability
from derived.papers.cactus.model.rules import Cactus, Calibrated, Interp, Lenience, Mentored, SpS, TopK, Typical
from derived.papers.cactus.model.sampler import accept_reject

HALF = torch.tensor([0.5, 0.5], dtype=torch.float64)


@pytest.mark.parametrize("delta", [-1e-9, -1.0, math.nan, math.inf, True, "1"])
def test_budgets_are_finite_and_not_negative(delta):
    for make in (Cactus, Mentored, Calibrated, Lenience, Interp):
        with pytest.raises(ValueError, match="give a"):
            make(delta) if make is not Interp or delta is not True else make("x")
    if isinstance(delta, float):
        for call in (theory.gamma_cactus, divergences.gamma_constrained):
            with pytest.raises(ValueError, match="give a finite number >= 0"):
                call(0.3, delta)
            with pytest.raises(ValueError, match="give a finite number >= 0"):
                call(0.3, torch.tensor([0.1, delta], dtype=torch.float64))


def test_knobs_have_ranges():
    for make, value in (
        *((Lenience, 0.0), (Lenience, 1.1), (Interp, 1.1), (Calibrated, 1.1), (Typical, 0.0), (TopK, 0)),
        *((TopK, 1.5), (TopK, True)),
    ):
        with pytest.raises(ValueError, match="give"):
            make(value)
    with pytest.raises(ValueError, match="rejects every draft"):
        Typical(1.0, 1.0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (torch.tensor([0.5, 0.25]), "sums to 0.75, not to 1; give probabilities"),
        (torch.tensor([0.0, 0.0]), "sums to 0, not to 1; a zero row has no law"),
        (torch.tensor([0.5, 0.5001], dtype=torch.float64), "sums to 1.0001, not to 1; give probabilities"),
        (torch.tensor([1.5, -0.5]), "negative probability"),
        (torch.tensor([math.nan, 0.5]), "sums to nan"),
        (torch.tensor([1, 0]), "give a floating-point tensor"),
        (torch.zeros(0), "at least one row"),
        ([0.5, 0.5], "give a floating-point tensor"),
    ],
)
def test_rows_are_laws(rows, message):
    for call in (exact.output_law, exact.acceptance_rate, lambda p, q, _: theory.mentored_law(p, q, 0.1)):
        with pytest.raises(ValueError, match=message):
            call(HALF, rows, SpS())
        with pytest.raises(ValueError, match=message):
            call(rows, HALF, SpS())
    if isinstance(rows, torch.Tensor) and rows.shape == (2,) and rows.is_floating_point():
        good, ids = HALF.to(rows.dtype).expand(1, 1, 2), torch.tensor([[0]])
        bad = rows.expand(1, 2, 2)
        with pytest.raises(ValueError, match=message):
            accept_reject(good, ids, bad, SpS(), stream(0))
        message = message if rows[0] > 0 else "probability 0 or NaN"
        with pytest.raises(ValueError, match=message):
            accept_reject(bad[:, :1], ids, good.expand(1, 2, 2), SpS(), stream(0))


def test_rounded_rows_are_laws():
    """Softmax rows of every dtype pass, at 152,000 tokens."""
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        rows = torch.randn(2, 1, 152_000, generator=stream(1), dtype=torch.float32).mul(3).softmax(dim=-1).to(dtype)
        ids = rows.argmax(dim=-1)
        accept_reject(rows, ids, rows.expand(2, 2, -1), Cactus(0.1), stream(0))


def test_blocks_have_shapes():
    p, q, ids = HALF.expand(3, 2, 2), HALF.expand(3, 3, 2), torch.zeros(3, 2, dtype=torch.int64)
    wide = torch.full((3, 3, 4), 0.25, dtype=torch.float64)
    for message, arguments in {
        "share one vocabulary": (p, ids, wide),
        "m >= 1": (p[:, :0], ids[:, :0], q[:, :1]),
        "B >= 1": (p[:0], ids[:0], q[:0]),
        r"give int64 \(3, 2\)": (p, ids[:, :1], q),
        r"is torch.int32": (p, ids.int(), q),
        r"give \(3, 3, 2\)": (p, ids, q[:, :2]),
        "from 0 to 2; give token numbers from 0 to 1": (p, ids + torch.tensor([0, 2]), q),
        "draft_probs is torch.float64": (p[0], ids, q),
        "target_probs is torch.int64": (p, ids, ids),
    }.items():
        with pytest.raises(ValueError, match=message):
            accept_reject(*arguments, SpS(), stream(0))
    certain = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(1, 1, 2)
    with pytest.raises(ValueError, match="was not drawn from that one"):
        accept_reject(certain, torch.tensor([[1]]), HALF.expand(1, 2, 2), SpS(), stream(0))


def test_counts_and_sizes():
    for m in (0, -1, 1.5):
        with pytest.raises(ValueError, match="m = "):
            theory.expected_accepted(0.5, m)
        with pytest.raises(ValueError, match="m = "):
            exact.sequence_law(None, None, SpS(), m=m, num_tokens=2, num_vocab=2)
    with pytest.raises(ValueError, match="give a number from 0 to 1"):
        theory.expected_accepted(1.2, 3)
    assert theory.expected_accepted(1.0, 4) == 4
    assert theory.expected_accepted(0.0, 4) == 0
    with pytest.raises(ValueError, match="share one vocabulary"):
        divergences.divergence(HALF, torch.full((4,), 0.25))
    assert torch.equal(theory.mentored_law(HALF, HALF, 0.3), HALF)


@pytest.mark.parametrize("wrong", [-0.5, 1.5, math.nan])
def test_what_is_no_probability_is_refused(wrong):
    """Each gamma asks for probabilities; the rounding of a softmax in float32 passes."""
    calls = [
        lambda x: theory.gamma_cactus(x, 0.1),
        lambda x: Lenience(0.5).gamma(0.5, x),
        lambda x: Interp(0.5).gamma(0.5, x),
        lambda x: divergences.gamma_constrained(x, 0.1, "tv"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="give probabilities"):
            call(wrong)
    assert theory.gamma_cactus(1 + 1e-7, 0.1) == 1


def test_a_probability_may_miss_its_range_by_rounding_alone():
    slack = 65 * 2.0**-23
    assert as_probability("a", torch.tensor([-0.9 * slack, 1 + 0.9 * slack])).dtype == torch.float64
    for wrong in (-1.1 * slack, 1 + 1.1 * slack):
        with pytest.raises(ValueError, match="give probabilities"):
            as_probability("a", torch.tensor([0.5, wrong], dtype=torch.float64))
