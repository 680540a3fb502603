"""Effect sizes: against the paper's number, the smallest detectable effect, and the criterion.

effect     the paper's number and ours as one quantity, their difference with its interval
see        the smallest difference that a design sees four times in five at the interval's level
undecided  why an interval decides nothing: too few, absent, or at the edge
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from derived.lab.stats import LEVEL, Estimate

REACH = float(norm.ppf((1 + LEVEL) / 2))  # of an interval, in standard errors
POWER = 1 + float(norm.ppf(0.8)) / REACH  # of a difference that is seen four times in five, in reaches
DECISIVE = 100  # where more than so many times the draws would be needed, more draws are no answer


@dataclass(frozen=True)
class Published:
    """A number of the paper, in the unit of the claim, with its standard error where it is known.

    ``ours`` measures the same quantity on the claim's rows, where the claim's own measure is another.

    >>> print(Published(0.81, "share", 0.02))
    0.81 ± 0.02 share
    """

    value: float
    unit: str
    error: float = 0.0
    ours: Callable[[pd.DataFrame], Estimate] | None = None

    def __str__(self) -> str:
        return f"{self.value:.10g}{f' ± {self.error:.3g}' if self.error else ''} {self.unit}"


def see(found: Estimate, error: float = 0.0) -> float | None:
    """The smallest difference that a design sees; ``error`` is that of the number it is compared with."""
    if found.low is None or found.high is None:
        return None
    return POWER * math.hypot((found.high - found.low) / 2, REACH * error)


def effect(published: Published, found: Estimate) -> dict[str, Any]:
    """The paper's number beside ours. The interval of the difference is made from both (MOVER); one that is exact on
    our side has the paper's error alone."""
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    difference, theirs = found.value - published.value, REACH * published.error
    return {
        "unit": published.unit,
        **{"paper": published.value, "paper_error": published.error or None},
        **{"ours": found.value, "low": found.low, "high": found.high},
        "difference": difference,
        "difference_low": difference - math.hypot(found.value - low, theirs),
        "difference_high": difference + math.hypot(high - found.value, theirs),
        "ratio": found.value / published.value if published.value else None,
        "sees": see(found, published.error),
    }


def _needed(reach: float, n: int, tail: float, distance: float) -> float:
    """The fewest draws of the spread that n draws showed whose interval reaches no farther than ``distance``; infinite
    where not even a hundred times as many do. Student's t falls with n as well."""
    spread = reach / student.isf(tail, n - 1) * math.sqrt(n)
    sizes = range(2, DECISIVE * n + 1)
    at = bisect_left(sizes, True, key=lambda size: student.isf(tail, size - 1) * spread / math.sqrt(size) <= distance)
    return sizes[at] if at < len(sizes) else math.inf


def undecided(found: Estimate, accept: tuple[float, float], matters: float | None) -> dict[str, Any] | None:
    """Why an interval that straddles an end of ``accept`` decides nothing; None where it does not straddle one.

    absent       no effect beyond the end by as much as ``matters`` is left in the interval; ``excluded`` says how much
    too few      about ``n`` draws of the variance that was seen would decide, if the value stays where it is; or, with
                 ``excludes``, would leave no effect as large as that, where fewer do
    at the edge  not even a hundred times the draws would

    An interval that is symmetric in logarithms is taken there; one of Student's, one case of however many that are
    judged jointly, tells its level by its standard error. That of the least of several cases, whose ends are of
    different ones, tells neither: its n is rough, mostly right to a factor of two.
    """
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    ends = [end for end in accept if math.isfinite(end) and low < end < high]
    if not ends or not math.isfinite(found.value):
        return None
    end = min(ends, key=lambda each: abs(found.value - each))
    one_sided, upward = not all(map(math.isfinite, accept)), accept[1] == math.inf
    excluded = high - end if upward else end - low
    if one_sided and matters is not None and excluded <= matters:
        return {"kind": "absent", "excluded": excluded}
    reaches = high - found.value, found.value - low
    tail = (1 - LEVEL) / 2
    if found.error and math.isclose(*reaches, rel_tol=1e-6):
        tail = float(student.sf(reaches[0] / found.error, found.n - 1))
    logs = min(low, end) > 0 and math.isclose(low * high, found.value**2, rel_tol=1e-6)
    place = math.log if logs else float
    nearest = place(high if end > found.value else low)
    decide = _needed(abs(nearest - place(found.value)), found.n, tail, abs(place(found.value) - place(end)))
    exclude, room = math.inf, (matters or 0.0) - (found.value - end) * (1 if upward else -1)
    if one_sided and matters is not None and room > 0:
        exclude = _needed(reaches[0 if upward else 1], found.n, tail, room)
    if not math.isfinite(min(decide, exclude)):
        return {"kind": "at the edge"}
    return (
        {"kind": "too few", "n": decide}
        if decide <= exclude
        else {"kind": "too few", "n": exclude, "excludes": matters}
    )
