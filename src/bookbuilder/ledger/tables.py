"""Makes the tables that the command line prints: chapters that ran, rows of the ledger."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table

from bookbuilder.run.driver import Outcome
from derived.lab.findings import interval


def of_chapters(outcomes: Sequence[Outcome]) -> Table:
    """Count the verdicts of each chapter that ran."""
    verdicts = ("holds", "fails", "refuted", "undecided", "reported", "not run")
    table = _table("chapter", "seconds", "hold", "fail", *verdicts[2:])
    for outcome in outcomes:
        if outcome.findings is None:
            table.add_row(outcome.slug, "failed")
            continue
        seconds = f"{outcome.findings['seconds']:.1f}{' (cached)' if outcome.cached else ''}"
        counts = Counter(row["verdict"] for row in outcome.findings["rows"] if row["headline"])
        table.add_row(outcome.slug, seconds, *(str(counts[verdict]) for verdict in verdicts))
    return table


def stale(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield one line per record that no longer agrees with its code, with the reasons."""
    for outcome in outcomes:
        for record in outcome.findings["records"] if outcome.findings else ():
            if record["state"] == "stale":
                name = f"{record['experiment']}/{record['tier']}"
                yield f"{outcome.slug}: the record {name} is stale: {'; '.join(record['reasons'])}"


def of_claims(rows: Sequence[dict[str, Any]]) -> Table:
    """List rows of the ledger with value, interval and verdict."""
    table = _table("claim", "tier", "value", "interval", "n", "verdict", "expected")
    for row in rows:
        value = "" if row["value"] is None else f"{row['value']:.4g} {row['unit']}".rstrip()
        span, n = interval(row["low"], row["high"]), str(row["n"] or "")
        table.add_row(row["id"], row["tier"], value, span, n, row["verdict"], row["expected"] or "")
    return table


def _table(*heads: str) -> Table:
    return Table(*heads, box=None, header_style="bold")
