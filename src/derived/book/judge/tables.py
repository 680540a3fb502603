"""Makes the tables that the command line prints: chapters that ran, rows of the ledger, predicted prices."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table

from derived.book.house import House
from derived.book.judge import ledger
from derived.book.record import cost
from derived.book.run.driver import Outcome
from derived.lab.findings import interval


def of_chapters(outcomes: Sequence[Outcome]) -> Table:
    """Count the verdicts of each chapter that ran."""
    table = _table("chapter", "seconds", "hold", "fail", "refuted", "undecided", "reported", "not run")
    for outcome in outcomes:
        if outcome.findings is None:
            table.add_row(outcome.slug, "failed")
            continue
        seconds = f"{outcome.findings['seconds']:.1f}{' (cached)' if outcome.cached else ''}"
        table.add_row(outcome.slug, seconds, *map(str, ledger.totals(outcome.findings["rows"]).values()))
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


def of_prices(house: House, paper: str, experiments: Sequence[str], tier: str) -> Table:
    """List what each counted experiment would take on each card, and the sum of those that fit."""
    table = _table("experiment", "memory", *(card["name"] for card in cost.cards()))
    rows = [cost.predicted(house, cost.name_of(paper, name, tier)) for name in experiments]
    for name, row in zip(experiments, rows, strict=True):
        if not row:
            table.add_row(name, "cannot be counted, and has no record to go by")
            continue
        memory = f"{row[0].memory / cost.GIGA:.2g} GB" if row[0].memory else "?"
        table.add_row(name, memory, *("~" * on.rough + _price([on]) if on.fits else "too large" for on in row))
    sums = [_price([on for on in column if on.fits]) for column in zip(*filter(None, rows), strict=True)]
    table.add_row(f"{paper}, what fits", "", *sums, style="bold")
    return table


def _price(costs: Sequence[cost.Cost]) -> str:
    return f"{cost.spell(sum(on.seconds for on in costs))}, {cost.dollars(sum(on.dollars for on in costs))}"


def _table(*heads: str) -> Table:
    return Table(*heads, box=None, header_style="bold")
