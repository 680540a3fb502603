"""Read the hand-written part of a chapter's report: ``book/reports/<slug>.yml``."""

import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from bookbuilder import yaml_io
from bookbuilder.paths import UserError

FOLDER = "book/reports"
Words = Annotated[str, StringConstraints(min_length=1)]
Closeness = Literal["authors' code", "rewritten from the text", "rewritten from a digest", "designed here"]


class LeftOut(yaml_io.Shape):
    """A claim of the paper that no row takes up, and why."""

    what: Words
    why: Words


class Earlier(yaml_io.Shape):
    """Somebody else's replication, critique or follow-up, and the claims that it bears on."""

    what: Words
    kind: Literal["replication", "critique", "follow-up", "neighbour"]
    bears: Literal["supports", "threatens", "sharpens", "neither"] = "neither"
    claims: list[Words] = Field(default_factory=list)


class Deviation(yaml_io.Shape):
    """What is done otherwise than in the paper, why, and in which direction a result may move for it."""

    what: Words
    why: Words
    direction: Words


class Letter(yaml_io.Shape):
    """A letter to the authors on what fails; ``sent`` and ``reply`` are for the publisher."""

    text: Words
    sent: datetime.date | None = None
    reply: str = ""


class Report(yaml_io.Shape):
    """The file. ``apart`` says, by the key of an item of the checklist, why it does not apply."""

    version: Words
    seen: Words
    left_out: Annotated[list[LeftOut], Field(min_length=1)]
    searched: Words
    earlier: list[Earlier] = Field(default_factory=list)
    code: Words
    closeness: Closeness
    closer: dict[str, Closeness] = Field(default_factory=dict)  # experiments that differ in it
    deviations: Annotated[list[Deviation], Field(min_length=1)]
    easy: Words
    hard: Words
    gpu_hour: Words
    letter: Letter | None = None
    apart: dict[str, Words] = Field(default_factory=dict)

    def names(self) -> set[str]:
        """The claims that it names."""
        return {claim for each in self.earlier for claim in each.claims}


def path(root: Path, slug: str) -> Path:
    """Return the path of a chapter's file."""
    return root / FOLDER / f"{slug}.yml"


def read(root: Path, slug: str, claims: set[str]) -> Report:
    """Read the file of a chapter; UserError for another shape, and for a claim that the chapter does not have."""
    report = yaml_io.read(path(root, slug), Report)
    if unknown := sorted(report.names() - claims):
        raise UserError(f"{FOLDER}/{slug}.yml: {slug} has no claim {unknown[0]}")
    return report
