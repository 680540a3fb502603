"""What the tables of the command line say."""

import io

from press import ROW
from rich.console import Console
from rich.table import Table

from derived.book.house import House
from derived.book.judge import tables
from derived.book.record import cost
from derived.book.run.driver import Outcome


def lines(table: Table) -> list[list[str]]:
    """The lines of a printed table, in words."""
    file = io.StringIO()
    Console(file=file, width=200).print(table)
    return [line.split() for line in file.getvalue().splitlines()]


def test_prices_add_up_and_say_what_is_rough_too_large_or_unknown(tmp_path):
    house = House(tmp_path)
    (tmp_path / "results").mkdir()
    hour = {"of": "x", "launches": 3600 * 10**5}
    found = {
        "toy/Small/gpu": hour,
        "toy/Large/gpu": hour | {"held": 10**11},
        "toy/Rough/gpu": {"of": "x", "recorded": 7200},
    }
    cost.keep(house, found)
    head, small, large, rough, other, total = lines(
        tables.of_prices(house, "toy", ["Small", "Large", "Rough", "No"], "gpu")
    )
    assert head == ["experiment", "memory", "CPU", "core", "T4", "A100", "H100"]
    assert small[:6] == ["Small", "?", "1", "h,", "0.05", "USD"]
    assert large == ["Large", "1e+02", "GB", *["too", "large"] * 4]
    assert rough[:6] == ["Rough", "?", "~2", "h,", "0.09", "USD"]
    assert " ".join(other) == "No cannot be counted, and has no record to go by"
    assert total[:7] == ["toy,", "what", "fits", "3", "h,", "0.14", "USD"]


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
