"""Runs Jupyter Book on the stage, and says in one line each what was wrong: page, place and cause."""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

from bookbuilder.paths import UserError

# The trees of a book are millions of nodes that live until their process ends: looking for garbage among them again and
# again takes two fifths of its time, and finds next to none.
JUPYTER_BOOK = """
import gc, sys
from bookbuilder.paths import exit_with_parent
exit_with_parent(int(sys.argv.pop(1)))
gc.disable()
from jupyter_book.cli.main import main
main()
"""
LIMIT = 1800  # seconds that a site may take


def build_html(root: Path, staged: Path, output: Path) -> Path:
    """Run Jupyter Book on the stage; return the folder of pages, or raise with every warning as one line."""
    command = [sys.executable, "-P", "-c", JUPYTER_BOOK, str(os.getpid()), "build", str(staged)]
    command += ["--config", str(root / "_config.yml"), "--toc", str(staged / "book/_toc.yml")]
    command += ["--path-output", str(output), "-W", "--keep-going", "-q"]
    said = {"capture_output": True, "text": True, "errors": "replace", "env": {**os.environ, "NO_COLOR": "1"}}
    try:
        done = subprocess.run(command, cwd=root, timeout=LIMIT, **said)
    except subprocess.TimeoutExpired:
        raise UserError(f"the site builder was stopped at its limit of {LIMIT} s") from None
    problems = read_warnings(done.stderr, staged)
    if done.returncode or problems:
        raise UserError("\n".join(problems or [_last_words(done.stdout + done.stderr)]))
    return output / "_build/html"


_PROBLEM = re.compile(r"^(?:(?P<path>[^\n:]+?):(?:(?P<line>\d+):)? )?(?:WARNING|ERROR|CRITICAL|SEVERE): (?P<text>.*)$")


def read_warnings(stderr: str, staged: Path) -> list[str]:
    """Read Sphinx's warnings, one line each: page, place and cause."""
    found = []
    for line in re.sub(r"\x1b\[[0-9;]*m", "", stderr).splitlines():
        match = _PROBLEM.match(line)
        if match and not match["text"].startswith("build finished"):
            page = _page(Path(match["path"] or "site"), staged)
            found.append(f"{page}{_place(page, match['line'])}: {match['text']}")
    return list(dict.fromkeys(found))


def _page(path: Path, staged: Path) -> Path:
    """Name a page as the repository does; sphinx-proof writes notebooks/x.ip.rst for notebooks/x.ipynb."""
    stem = path.name.removesuffix(".rst").removesuffix(".ip")
    known = [path, path.with_name(f"{stem}.ipynb"), path.with_name(f"{stem}.md")]
    found = next((candidate for candidate in known if candidate.is_file()), path)
    return found.relative_to(staged) if found.is_relative_to(staged) else found


def _place(page: Path, line: str | None) -> str:
    """Write a line number in words; in a notebook MyST-NB counts 10000 per cell, and one line too many."""
    if line is None:
        return ""
    cell, within = divmod(int(line), 10000)
    return f", cell {cell}, line {max(within - 1, 1)}" if page.suffix == ".ipynb" and cell else f", line {line}"


def _last_words(text: str) -> str:
    """Find the one useful line of a builder that stopped: the first exception, or the text after "… error:"."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines() if line.strip()]
    began = [
        line for line, after in itertools.pairwise(lines) if after.startswith("The above exception was the direct")
    ]
    named = [after for line, after in itertools.pairwise(lines) if line.lower().endswith(" error:")]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b.", line)]
    cause = (began[:1] or named[-1:] or raised[-1:] or lines[-1:] or ["no message"])[0]
    place = "book/references.bib: " if cause.startswith("pybtex.") else ""
    return f"the site builder stopped: {place}{cause}"
