"""Compares the findings of the last build with the committed ledger, and rewrites it on request."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bookbuilder.ledger import changes
from bookbuilder.notebook import claim_ids, notebook_claims
from bookbuilder.paths import Repo, UserError, write_whole
from bookbuilder.run.driver import read_findings, read_notebook, unfinished
from derived.lab.findings import COLUMNS, interval

Row = dict[str, Any]
TERMS = ("statement", "criterion", "accept", "configuration")  # of which ``terms`` is the hash
JUDGING = ("criterion", "accept", "unit")  # may not change silently once they have judged a record
# What the committed ledger keeps of a row: nothing that differs between machines but the numbers themselves.
COMMITTED = (
    *("id", "paper", "tier", "expected", "registered", "verdict", "value", "low", "high", "n", "device"),
    *(*TERMS, "unit", "terms", "changed"),
)
OWN = (0, "ci")  # seed and tier of the book's own run


def rows_of_last_build(repo: Repo) -> list[Row]:
    """Read the rows of all chapters that ran here, in the order of the book."""
    found = {slug: read_findings(repo, slug) for slug in repo.chapters()}
    ran = {slug: findings["rows"] for slug, findings in found.items() if findings is not None}
    if not ran:
        raise UserError(f"no findings of {', '.join(found)} yet: run `make site` first")
    if again := unfinished(repo):
        raise UserError(f"the last run did not end, so what is here is older; run it again: {again}")
    return entered(repo, [{name: row[name] for name in COLUMNS} for rows in ran.values() for row in rows])


def entered(repo: Repo, rows: Sequence[Row]) -> list[Row]:
    """Give each row of a run the changes of its claim, and the expected verdict where one judges it."""
    expected, changed = {key(row): row["expected"] for row in committed(repo)}, changes.read(repo.root)
    return [
        {
            **row,
            "changed": changed.get(row["id"], []),
            "expected": expected.get(key(row)) if judged(row) else None,
        }
        for row in rows
    ]


def judged(row: Row) -> bool:
    """Whether an expected verdict judges a row: it ran, and not with a seed of a rerunner's own."""
    return row["verdict"] != "not run" and row["seed"] == 0


def has_run(row: Row) -> bool:
    """Whether a row of the committed ledger has a verdict; one that is registered alone has none."""
    return row["verdict"] not in (None, "not run")


def not_run(repo: Repo) -> list[str]:
    """List the chapters that were not run here."""
    return [slug for slug in repo.chapters() if read_findings(repo, slug) is None]


def check_acceptable(repo: Repo, rows: Sequence[Row]) -> None:
    """Refuse to accept chapters that last ran at another seed or tier, and verdicts that are not expected."""
    for slug in repo.chapters():
        found = read_findings(repo, slug)
        if found and (found["seed"], found["tier"]) != OWN:
            raise UserError(
                f"not accepted: {slug} last ran with seed {found['seed']} and tier {found['tier']}; "
                f"the book's own run has seed 0 and the small size: run: make site CHAPTERS={slug}"
            )
    wrong = unexpected(rows)
    if wrong:
        raise UserError("\nderived: ".join(["not accepted", *wrong]))


def key(row: Row) -> tuple[str, str, str]:
    """What identifies a row of the ledger."""
    return row["paper"], row["id"], row["tier"]


def unexpected(rows: Sequence[Row]) -> list[str]:
    """One line per row whose verdict is not the expected one, or of which none is registered, and per control that
    does not fail."""
    lines = [
        f"{row['paper']}: claim {row['id']} at tier {row['tier']}: {said}" for row in rows if (said := _control(row))
    ]
    for row in (row for row in rows if judged(row) and row["verdict"] != row["expected"]):
        claim = f"{row['paper']}: claim {row['id']} at tier {row['tier']}"
        command = f"derived register {row['paper']} VERDICT {row['id']} --tier {row['tier']}"
        if row["expected"] is None:
            lines.append(f"{claim} is not registered; say which verdict you expect: {command}")
        else:
            reason = f" ({row['reason']})" if row["reason"] else ""
            lines.append(f"{claim}: the verdict is «{row['verdict']}», expected «{row['expected']}»{reason}")
    return lines


def _control(row: Row) -> str:
    """What is wrong with the control of a row that the book's own seed ran: a claim that holds needs one that fails."""
    control = row["control"]
    if not judged(row) or not isinstance(control, dict):
        return ""
    if control["verdict"] == "holds":
        return f"its control passes by the same criterion ({control['value']:.4g}), so the claim is not evidence"
    if control["value"] is None and row["value"] is not None:
        return f"its control has no number: {control['reason']}"
    if row["headline"] and row["verdict"] == "holds" and control["verdict"] != "fails":
        return "its control is undecided; a control must fail: take more draws, or call another method a comparison"
    return ""


def committed(repo: Repo) -> list[Row]:
    """The rows of the committed ledger; none where it is not there."""
    return read_rows(repo.ledger) if repo.ledger.exists() else []


def foreign(repo: Repo, slugs: Sequence[str]) -> list[str]:
    """One line per claim of a chapter whose id is that of another chapter's."""
    rows = committed(repo)
    owners = {slug: {row["id"]: row["paper"] for row in rows if row["paper"] != slug} for slug in slugs}
    return [
        f"{slug}: {id} is a claim of {owners[slug][id]}; the ids of a chapter begin with letters that no other has"
        for slug in slugs
        for id in claim_ids.ids(repo.root, slug)
        if id in owners[slug]
    ]


def unregistered(repo: Repo, slugs: Sequence[str]) -> list[str]:
    """One line per claim of a chapter of which the committed ledger expects no verdict at any tier."""
    expected = {(row["paper"], row["id"]) for row in committed(repo) if row["expected"] is not None}
    return [
        f"{slug}: claim {id} is not registered; say which verdict you expect: derived register {slug} VERDICT {id}"
        for slug in slugs
        for id in [*claim_ids.ids(repo.root, slug, judged=True), *notebook_claims.decided(read_notebook(repo, slug))]
        if (slug, id) not in expected
    ]


def read_rows(path: Path) -> list[Row]:
    """Read a ledger written by ``derived claims --json`` or ``--accept``."""
    try:
        rows = json.loads(path.read_text("utf-8"))
        if not isinstance(rows, list) or any(not {"id", "paper", "tier", "verdict"} <= set(row) for row in rows):
            raise ValueError("not a list of ledger rows")
        if not rows:
            raise ValueError("it has no rows")
        if any(not isinstance(row.get(name), float | int | None) for row in rows for name in ("value", "low", "high")):
            raise ValueError("a value is no number")
    except FileNotFoundError:
        raise UserError(f"{path} is not there") from None
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} is no ledger ({error}); it should come from `derived claims --json`") from None
    return rows


def unexplained(committed: Sequence[Row], rows: Sequence[Row]) -> list[str]:
    """One line per row whose terms changed between its registration and its first run, and per recorded
    row whose criterion, range or unit changed without a new entry of results/changes.yml, to which one only adds."""
    before = {key(row): row for row in committed if row.get("terms")}
    lines = []
    for row in rows:
        old = before.get(key(row))
        if old is None:
            continue
        kept, now = old["changed"], changes.hashes(row["changed"])
        if now[: len(kept)] != kept:
            lines.append(f"{_label(row)}: its entry in {changes.FILE} is gone or reads differently; only add to them")
        elif row["terms"] != old["terms"] and old["verdict"] is None:
            parts = " and ".join(part for part in TERMS if row[part] != old[part])
            lines.append(f"{_label(row)}: {parts} changed since it was registered; register it again before it runs")
        elif recorded(old) and now == kept and (parts := [part for part in JUDGING if row[part] != old[part]]):
            changed = f"{_label(row)}: {' and '.join(parts)} changed after numbers existed"
            lines.append(f"{changed}; {changes.FILE} must say what and why")
    return lines


def recorded(row: Row) -> bool:
    """Tell whether a row of the committed ledger rests on a record."""
    return row["tier"] != "ci" and has_run(row)


def _label(row: Row) -> str:
    return f"{row['paper']} {row['id']} ({row['tier']})"


def accept(repo: Repo, rows: Sequence[Row]) -> None:
    """Write the last build's verdicts to the committed ledger; refuse unexplained changes.

    The rows of a chapter that was not run here stay, and so do live rows whose real weights or data are not here.
    """
    before, absent = committed(repo), not_run(repo)
    silent = unexplained(before, rows)
    if silent:
        raise UserError("\nderived: ".join(silent))
    registered = {key(row): {name: row[name] for name in ("expected", "registered")} for row in before}
    stay = {key(row): row for row in before if row["tier"] == "ci" and has_run(row)}
    kept = [
        stay[key(row)]
        if row["verdict"] == "not run" and key(row) in stay
        else dict.fromkeys(COMMITTED)
        | {name: row[name] for name in COMMITTED if name in row}
        | {"changed": changes.hashes(row["changed"])}
        | registered.get(key(row), {})
        for row in rows
    ]
    kept += [row for row in before if row["paper"] in absent]
    order = dict.fromkeys((*repo.chapters(), *(row["paper"] for row in kept)))
    kept.sort(key=lambda row: [*order].index(row["paper"]))
    write_whole(repo.ledger, json.dumps(kept, indent=1) + "\n")


def _number(row: Row) -> str:
    if row.get("value") is None:
        return "no value"
    return f"{row['value']:.6g} {interval(row.get('low'), row.get('high'))}".rstrip()


def differences(committed: Sequence[Row], rows: Sequence[Row]) -> list[str]:
    """One line per row whose verdict differs from the committed one or is missing there.

    Chapters that were not run here are ignored.
    """
    ours = {key(row): row for row in committed}
    lines = []
    for b in rows:
        a, label = ours.get(key(b)), _label(b)
        if a is None or a["verdict"] is None:
            lines.append(f"{label}: not in the committed ledger")
        elif a["verdict"] != b["verdict"] and b["verdict"] != "not run":
            change = f"ours «{a['verdict']}» {_number(a)}, yours «{b['verdict']}» {_number(b)}"
            if None not in (a.get("value"), b.get("value")):
                change += f", difference {b['value'] - a['value']:+.3g}"
            lines.append(f"{label}: {change}")
    return lines


def moves(committed: Sequence[Row], rows: Sequence[Row], most: int = 5) -> list[str]:
    """The largest changes of a value, relative to the wider of the two intervals or else to the value itself."""
    ours, found = {key(row): row for row in committed}, []
    for b in rows:
        a = ours.get(key(b))
        if a is None or None in (a["value"], b["value"]) or a["value"] == b["value"]:
            continue
        ends = [row["high"] - row["low"] for row in (a, b) if None not in (row.get("low"), row.get("high"))]
        scale = max([*ends, 0.0]) or max(abs(a["value"]), abs(b["value"]))
        found.append((abs(b["value"] - a["value"]) / scale, f"{_label(b)}: {a['value']:.4g} → {_number(b)}"))
    return [line for _, line in sorted(found, reverse=True)[:most]]


def departures(repo: Repo, committed: Sequence[Row], rows: Sequence[Row]) -> list[str]:
    """One line per difference from the committed ledger, verdicts apart: missing rows and records, other numbers of
    a record, other terms. Chapters that did not run here, or ran at another seed or tier, are left out."""
    now, chapters = {key(row): row for row in rows}, repo.chapters()
    found = {slug: read_findings(repo, slug) for slug in chapters}
    own = [slug for slug in chapters if found[slug] and (found[slug]["seed"], found[slug]["tier"]) == OWN]
    known = [row for row in committed if row["verdict"] is not None]
    looked_at = [row for row in known if row["paper"] in own or row["paper"] not in chapters]
    departed = ((_label(row), _departed(row, now.get(key(row)))) for row in looked_at)
    return [f"{label}: {line}" for label, lines in departed for line in lines]


def _departed(ours: Row, yours: Row | None) -> list[str]:
    """List how a row differs from the committed one, its verdict apart."""
    if yours is None:
        return ["in the committed ledger, and no longer a row of this book; if that is right: derived claims --accept"]
    lines = []
    if recorded(ours) and yours["verdict"] == "not run":
        lines.append(f"ours «{ours['verdict']}» from a record, which is gone ({yours['reason']})")
    elif recorded(ours) and not _same_numbers(ours, yours):
        lines.append(f"its record gives other numbers: ours {_counted(ours)}, yours {_counted(yours)}")
    if ours.get("terms") not in (None, yours["terms"]) and not unexplained([ours], [yours]):
        lines.append("its terms are not the committed ones; once it ran with them: derived claims --accept")
    return lines


def _same_numbers(a: Row, b: Row) -> bool:
    """Compare the numbers of two rows up to rounding, relative to the largest."""
    names = ("value", "low", "high")
    scale = max((abs(row[name]) for row in (a, b) for name in names if row[name] is not None), default=0.0)
    return a["n"] == b["n"] and all(
        a[name] == b[name]
        or (None not in (a[name], b[name]) and math.isclose(a[name], b[name], rel_tol=0, abs_tol=1e-9 * scale))
        for name in names
    )


def _counted(row: Row) -> str:
    return f"{_number(row)}, n = {row['n']}"
