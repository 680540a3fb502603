"""The news of the ledger: the latest on the welcome page, and all changes on the page of history.

entry   the changes of one chapter on one day: new claims, claims that left the ledger (most went into another row),
        changed verdicts and changed criteria. Criteria come from the claims themselves; the rest is kept in
        results/news.json, which accepting a ledger extends.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from derived.book import written
from derived.book.house import write_whole
from derived.book.page import pages

FILE = "results/news.json"
SHOWN = 5  # entries on the welcome page

Row = dict[str, Any]


class Changed(written.Shape):
    """A verdict that changed."""

    id: str
    tier: str
    before: str
    after: str


class Record(written.Shape):
    """What accepting a ledger changed in one chapter."""

    date: str
    paper: str
    claims: int
    gone: list[str] = Field(default_factory=list)
    verdicts: list[Changed]


@dataclass
class Entry:
    """What happened in one chapter on one day."""

    date: str
    paper: str
    title: str
    claims: int = 0  # that are new
    gone: list[str] = field(default_factory=list)  # ids of claims that left the ledger
    verdicts: list[dict[str, Any]] = field(default_factory=list)  # id, tier, before, after; stands: is in the ledger
    criteria: dict[str, None] = field(default_factory=dict)  # ids of claims, each once

    @property
    def parts(self) -> list[str]:
        """What happened, counted, in a few words."""
        said = (
            (self.claims, "new claim", "new claims"),
            (len(self.gone), "claim that left the ledger", "claims that left the ledger"),
            (len(self.verdicts), "changed verdict", "changed verdicts"),
            (len(self.criteria), "changed criterion", "changed criteria"),
        )
        return [f"{count} {one if count == 1 else several}" for count, one, several in said if count]


def compared(before: Sequence[Row], after: Sequence[Row], date: str) -> list[dict[str, Any]]:
    """What an accepted ledger changes, one record for each paper in which anything did."""
    old = {(row["paper"], row["id"], row["tier"]): row["verdict"] for row in before}
    known = dict.fromkeys(key[:2] for key in old)
    found = []
    for paper in dict.fromkeys(row["paper"] for row in after):
        rows = [row for row in after if row["paper"] == paper]
        verdicts = [
            {"id": row["id"], "tier": row["tier"], "before": was, "after": row["verdict"]}
            for row in rows
            if (was := old.get((paper, row["id"], row["tier"]), row["verdict"])) != row["verdict"]
        ]
        now = {row["id"] for row in rows}
        new = {claim for claim in now if (paper, claim) not in known}
        gone = [claim for name, claim in known if name == paper and claim not in now]
        if new or gone or verdicts:
            found.append({"date": date, "paper": paper, "claims": len(new), "gone": gone, "verdicts": verdicts})
    return found


def read(root: Path) -> list[dict[str, Any]]:
    """The records of accepted ledgers, oldest first."""
    return [record.model_dump(exclude_unset=True) for record in written.read(root / FILE, list[Record])]


def add(root: Path, records: Sequence[dict[str, Any]]) -> None:
    """Keep the records of a ledger that is accepted now; records are only ever added."""
    if records:
        write_whole(root / FILE, json.dumps([*read(root), *records], indent=1, ensure_ascii=False) + "\n")


def entries(root: Path, chapters: Sequence[pages.Chapter]) -> list[Entry]:
    """What happened in these chapters, the newest day first and in it the order of the book."""
    found: dict[tuple[str, str], Entry] = {}
    titles = {chapter.slug: chapter.name for chapter in chapters}
    standing = {row["id"] for chapter in chapters for row in chapter.rows}

    def entry(date: str, paper: str) -> Entry:
        return found.setdefault((date, paper), Entry(date, paper, titles[paper]))

    for record in read(root):
        if record["paper"] in titles:
            of_day = entry(record["date"], record["paper"])
            of_day.claims += record["claims"]
            of_day.gone += record.get("gone", [])
            for each in record["verdicts"]:
                _note(of_day.verdicts, {**each, "stands": each["id"] in standing})
    for chapter in chapters:
        for row in chapter.rows:
            for change in (one for one in row["changed"] if one["kind"] != "expected"):
                entry(change["date"], chapter.slug).criteria[row["id"]] = None
    order = list(titles)
    ordered = sorted((one for one in found.values() if one.parts), key=lambda one: order.index(one.paper))
    return sorted(ordered, key=lambda one: one.date, reverse=True)


def _note(verdicts: list[dict[str, Any]], change: dict[str, Any]) -> None:
    """Add a change to those of a day: two of one claim are one, and none where they undo each other."""
    earlier = [one for one in verdicts if (one["id"], one["tier"]) == (change["id"], change["tier"])]
    for one in earlier:
        verdicts.remove(one)
    before = earlier[0]["before"] if earlier else change["before"]
    if before != change["after"]:
        verdicts.append({**change, "before": before})


def latest(news: Sequence[Entry]) -> str:
    """The newest entries as HTML, with the way to all of them. MyST."""
    return pages.raw(pages.html("news.html", entries=news[:SHOWN], more=len(news) > SHOWN))


def verdicts(news: Sequence[Entry]) -> str:
    """Every change of a verdict, the newest first. MyST."""
    changed = [(entry, change) for entry in news for change in entry.verdicts]
    return pages.raw(pages.html("verdicts.html", changed=changed))


def history(chapters: Sequence[pages.Chapter]) -> str:
    """What changed in the terms of claims after rows of them existed, newest first; claims of one change together."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for chapter in chapters:
        for row in chapter.rows:
            for change in row["changed"] if row["headline"] else ():
                key = (change["date"], chapter.slug, chapter.name, change["what"], change["why"])
                groups.setdefault(key, []).append(row)
    changes = sorted(groups.items(), key=lambda group: group[0][0], reverse=True)
    claims = {row["id"] for rows in groups.values() for row in rows}
    return pages.raw(pages.html("history.html", changes=changes, claims=len(claims)))
