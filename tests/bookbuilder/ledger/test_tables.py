"""What the tables of the command line say."""

import io

from rich.console import Console
from rich.table import Table
from toybook import ROW

from bookbuilder.ledger import tables
from bookbuilder.run.driver import Outcome


def lines(table: Table) -> list[list[str]]:
    """The lines of a printed table, in words."""
    file = io.StringIO()
    Console(file=file, width=200).print(table)
    return [line.split() for line in file.getvalue().splitlines()]


def test_chapters_have_their_verdicts_and_stale_records_their_reasons():
    record = {"experiment": "Draws", "tier": "cpu", "state": "stale", "reasons": ["a", "b"]}
    findings = {
        "seconds": 2.0,
        "rows": [ROW],
        "records": [record, record | {"experiment": "Sums", "state": "unchanged"}],
    }
    ran = [Outcome("toy", findings, cached=True), Outcome("other", None, "it fell over")]
    assert lines(tables.of_chapters(ran))[1:] == [["toy", "2.0", "(cached)", *"100000"], ["other", "failed"]]
    assert list(tables.stale(ran)) == ["toy: the record Draws/cpu is stale: a; b"]
