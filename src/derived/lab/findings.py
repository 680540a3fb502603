"""The data that a chapter hands to the builder: keys of a ledger row, and formats of its numbers.

A check cell decides a claim by a call that names it: ``check(gap, bound, "OLS-2")``, ``at_most`` or ``refute``.

Nothing heavy is imported here, so that the builder starts at once.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

#: The keys of a row of the ledger as a chapter makes it, in order.
COLUMNS = (
    *("id", "paper", "kind", "statement", "plain", "source", "where", "paper_value", "tier", "device", "seed", "value"),
    *("low", "high", "unit", "n", "criterion", "accept", "configuration", "terms", "verdict", "reason", "amends"),
    *(
        "experiment",
        "proof",
        "headline",
        "control",
        "comparison",
        "undecided",
        "horizon",
        "scale",
        "made_of",
        "effect",
        "sees",
    ),
)

#: The MIME type under which a chapter hands its findings to the builder.
FINDINGS = "application/vnd.derived.findings+json"


def interval(low: float | None, high: float | None) -> str:
    """An interval of a row of the ledger, where an end at infinity is None; empty where there is no interval."""
    if low is None and high is None:
        return ""
    left, right = "(-∞" if low is None else f"[{low:.4g}", "∞)" if high is None else f"{high:.4g}]"
    return f"{left}, {right}"


#: The calls by which a check cell decides a claim, and the kind of the claim.
CALLS = {"check": "identity", "at_most": "bound", "refute": "counterexample"}

#: Unit and criterion of a claim that a check cell decides, by its kind.
JUDGED = {
    "identity": ("of its bound", "largest gap over its bound in the check cell: at most $1$"),
    "bound": ("of its bound", "largest value over its bound in the check cell: at most $1$, and the proof"),
    "counterexample": ("times its limit", "refuted by a gap above its limit in the check cell"),
}


def kind_of(calls: Iterable[str]) -> str:
    """The kind of a claim from the calls that decide it: one ``at_most`` makes it a bound.

    ValueError where one call refutes what another one checks.
    """
    kinds = {CALLS[call] for call in calls}
    if "counterexample" in kinds and len(kinds) > 1:
        raise ValueError("it is both checked and refuted; give the refuted reading its own id")
    return "bound" if "bound" in kinds else kinds.pop()


def hashed(terms: dict[str, Any]) -> str:
    """The hash of the terms of a verdict, which the ledger keeps."""
    return hashlib.sha256(json.dumps(terms, sort_keys=True).encode()).hexdigest()[:16]
