"""What the commands share: options, and errors that are told in one line."""

import functools
import os
from collections.abc import Callable
from typing import Annotated

import typer

from derived.book.house import UserError

CORES = os.cpu_count() or 1

Slugs = Annotated[list[str] | None, typer.Argument(help="Chapters to run; all of them if none is named.")]
Tier = Annotated[str, typer.Option(help="Size of the experiments: ci, cpu or gpu.")]
Seed = Annotated[int, typer.Option(help="Seed of every random stream; expected verdicts are judged at 0 only.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes at a time, one thread each.")]
Limit = Annotated[float | None, typer.Option(min=1, help="Seconds that one chapter may take, the site builder apart.")]


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
        except OSError as error:
            typer.echo(f"derived: {error.strerror or error}: {error.filename or ''}".rstrip(": "), err=True)
        raise typer.Exit(1)

    return wrapped
