"""The commands for verdicts: ``derived claims | register | compare``."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bookbuilder.ledger import ledger, tables
from bookbuilder.paths import UserError, find_repo


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
    file: Annotated[Path, typer.Argument(help="What `derived claims --json` printed.")],
) -> None:
    """Print the verdicts of a rerun that differ from the committed ones, ready for a bug report.

    Example: derived compare mine.json
    """
    repo = find_repo()
    mine, committed = ledger.read_rows(file), ledger.read_rows(repo.ledger)
    lines = ledger.differences(committed, mine)
    for line in lines:
        typer.echo(f"- {line}")
    typer.echo(f"{len(lines)} of {len(mine)} verdicts differ from results/ledger.json")
    raise typer.Exit(1 if lines else 0)
