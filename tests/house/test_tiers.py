"""Do tiers agree? What was decided at two sizes was decided in the same way."""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from derived.lab.record import results_root

DECIDED = ("holds", "fails", "refuted")  # an undecided row contradicts none
Rows = Sequence[dict[str, Any]]


def decided(rows: Rows) -> dict[tuple[str, str], dict[str, str]]:
    """The verdicts by tier of each claim that two tiers or more have decided."""
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for row in rows:
        if row["verdict"] in DECIDED:
            found[row["paper"], row["id"]][row["tier"]] = row["verdict"]
    return {claim: tiers for claim, tiers in found.items() if len(tiers) > 1}


def contradictions(rows: Rows) -> list[str]:
    return [
        f"{paper} {claim}: {tiers}" for (paper, claim), tiers in decided(rows).items() if len({*tiers.values()}) > 1
    ]


def test_no_claim_holds_at_one_size_and_fails_at_another():
    rows = json.loads((results_root() / "ledger.json").read_text("utf-8"))
    assert len(decided(rows)) > 10
    assert contradictions(rows) == []
    claim = next(iter(decided(rows)))
    turned = [
        row | {"verdict": "refuted"} if (row["paper"], row["id"]) == claim and row["tier"] == "ci" else row
        for row in rows
    ]
    assert len(contradictions(turned)) == 1
