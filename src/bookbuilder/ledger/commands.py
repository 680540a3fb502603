"""The commands for verdicts: ``derived claims | register | compare``."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bookbuilder.ledger import ledger, tables
from bookbuilder.paths import Repo, UserError, find_repo
from bookbuilder.run.driver import read_findings


def claims(
    as_json: Annotated[bool, typer.Option("--json", help="Every row as a JSON list.")] = False,
    accept: Annotated[bool, typer.Option("--accept", help="Make these verdicts the committed ones.")] = False,
) -> None:
    """Print the ledger of the last run; exit code 1 if a verdict is not the expected or the committed one.

    Example: derived claims --json > mine.json
    """
    repo = find_repo()
    rows = ledger.rows_of_last_build(repo)
    if absent := ledger.not_run(repo):
        typer.echo(f"note: {', '.join(absent)}: not run here and left out", err=True)
    if accept:
        ledger.check_acceptable(repo, rows)
        ledger.accept(repo, rows)
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
    else:
        Console().print(tables.of_claims(rows))
    wrong = ledger.unexpected(rows)
    judged = [row for row in rows if row["expected"] is not None]
    if judged:
        committed = ledger.committed(repo)
        wrong += ledger.differences(committed, judged) + ledger.unexplained(committed, rows)
        wrong += ledger.departures(repo, committed, rows)
    if wrong:
        raise UserError("\nderived: ".join(wrong))


def register(
    paper: Annotated[str, typer.Argument(help="Slug of the paper.")],
    verdict: Annotated[str, typer.Argument(help="holds, fails, refuted, undecided or reported.")],
    claims: Annotated[list[str], typer.Argument(help="Ids of the claims.")],
    tier: Annotated[str, typer.Option(help="Size of the experiments: ci, cpu or gpu.")] = "ci",
    again: Annotated[
        bool, typer.Option("--again", help="Expect another verdict of a claim that has one; the commit says why.")
    ] = False,
) -> None:
    """Enter in results/ledger.json which verdict you expect of claims, before their first run.

    Example: derived register ols_attention holds OLS-1.a OLS-1.b --tier cpu
    """
    from bookbuilder.ledger import register

    register.register(find_repo(), paper, verdict, claims, tier, again)


def compare(
    file: Annotated[
        Path | None, typer.Argument(help="What `derived claims --json` printed; the last run here if none is given.")
    ] = None,
) -> None:
    """Compare a rerun with the committed ledger: what ran, which verdicts differ, which values moved most.

    Exit code 1 if a verdict differs. Example: derived run cactus --seed 1; derived compare
    """
    repo = find_repo()
    mine = ledger.read_rows(file) if file else ledger.rows_of_last_build(repo)
    committed = ledger.read_rows(repo.ledger)
    lines = ledger.differences(committed, mine)
    for line in [*_what_ran(repo, mine, dated=file is None), *(f"- {line}" for line in lines)]:
        typer.echo(line)
    typer.echo(f"{len(lines)} of {len(mine)} verdicts differ from results/ledger.json")
    if moved := ledger.moves(committed, mine):
        typer.echo("largest moves, ours → yours:")
        for line in moved:
            typer.echo(f"  {line}")
    raise typer.Exit(1 if lines else 0)


def _what_ran(repo: Repo, rows: Sequence[ledger.Row], dated: bool) -> Iterator[str]:
    """A line for each chapter: seed, tier and date of its run, and how many rows do not come from records."""
    for slug in dict.fromkeys(row["paper"] for row in rows):
        own = [row for row in rows if row["paper"] == slug]
        found = (read_findings(repo, slug) if dated else None) or {"tier": "ci"}
        again = [row for row in own if row["tier"] == found["tier"] and row["verdict"] != "not run"]
        seeds = sorted({str(row["seed"]) for row in again if row.get("seed") is not None})
        date = f", {found['date'][:10]}" if "date" in found else ""
        yield (
            f"{slug}, tier {found['tier']}, seed {', '.join(seeds) or 'unknown'}{date}: "
            f"{len(again)} of {len(own)} rows run again, the others from records"
        )
