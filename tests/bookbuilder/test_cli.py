"""What the command line prints and writes, without a run."""

import signal
import subprocess
import sys

import psutil
import pytest
import typer
from pypdf import PdfReader, PdfWriter
from toybook import write_toc

from bookbuilder import cli
from bookbuilder.export import pdf
from bookbuilder.paths import Repo, UserError
from bookbuilder.run.driver import build_lock
from derived.lab.real import fetch, gemma, pinned


@pytest.fixture
def repo(tmp_path, monkeypatch) -> Repo:
    """A checkout with a site of one chapter, each page of which is printed as one blank sheet."""
    found = Repo(tmp_path)
    write_toc(tmp_path, "toy")
    for name in ("notebooks/toy", "book/intro", "book/how_to_read", "book/bibliography"):
        page = found.site / f"{name}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.touch()
    found.notebook("toy").parent.mkdir()
    found.notebook("toy").touch()

    def blank(page, file, limit):
        with PdfWriter() as writer:
            writer.add_blank_page(100, 100)
            writer.write(file)

    monkeypatch.setattr(pdf, "_apart", blank)
    monkeypatch.setattr("bookbuilder.paths.PACKAGE_ROOT", tmp_path / "src/derived")
    return found


def test_who_interrupts_is_told_that_nothing_is_lost(capsys):
    @cli.clear_errors
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as ended:
        interrupted()
    assert ended.value.exit_code == 130
    said = "derived: interrupted; the last good site is untouched, the next run continues\n"
    assert capsys.readouterr() == ("", said)


def test_the_book_is_whole_and_a_chapter_alone_leaves_it_so(repo):
    cli.pdf([])
    book = repo.build / "pdf/book.pdf"
    assert len(PdfReader(book).pages) == 4
    cli.pdf(["toy"])
    assert len(PdfReader(book).pages) == 4
    names = {path.name for path in book.parent.iterdir()}
    assert names == {"book.pdf", "toy.pdf", "intro.pdf", "how_to_read.pdf", "bibliography.pdf"}


def test_a_chapters_report_is_printed_in_a_folder_of_its_own(repo):
    (repo.site / "reports").mkdir()
    (repo.site / "reports/toy.html").touch()
    cli.pdf(["toy"])
    assert sorted(path.name for path in (repo.build / "pdf").rglob("*.pdf")) == ["toy.pdf", "toy.pdf"]
    assert (repo.build / "pdf/reports/toy.pdf").is_file()


def test_what_is_printed_half_is_not_put_in_place_and_printing_is_done_alone(repo, monkeypatch, capsys):
    cli.pdf(["toy"])
    before = (repo.build / "pdf/toy.pdf").read_bytes()

    def broken(page, file, limit):
        file.write_text("half")
        raise UserError("no more")

    monkeypatch.setattr(pdf, "_apart", broken)
    with pytest.raises(typer.Exit):
        cli.pdf(["toy"])
    assert (repo.build / "pdf/toy.pdf").read_bytes() == before
    assert len(list((repo.build / "pdf").iterdir())) == 1
    with build_lock(repo), pytest.raises(typer.Exit):
        cli.pdf(["toy"])
    assert "another build of this checkout is running" in capsys.readouterr().err


def test_gemma_is_made_ready_where_it_was_fetched_and_no_chapter_waits_for_it(monkeypatch):
    made = []
    monkeypatch.setattr(fetch, "fetch", lambda chosen: [])
    monkeypatch.setattr(gemma, "assembled", lambda: made.append("gemma"))
    for here in (False, True):
        monkeypatch.setattr(pinned.Package, "here", here)
        cli.real(["gemma"], accept_terms=True)
        cli.real(["austen"])
        assert made == ["gemma"] * here


SWALLOWS = """
import signal, subprocess, sys, time
from bookbuilder import cli
signal.signal(signal.SIGTERM, cli.interrupt)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
try:
    print(child.pid, flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("swallowed", flush=True)
time.sleep(600)
"""


def test_an_interrupt_that_is_swallowed_ends_the_command_and_its_children_all_the_same():
    with subprocess.Popen([sys.executable, "-c", SWALLOWS], stdout=subprocess.PIPE, text=True) as process:
        child = psutil.Process(int(process.stdout.readline()))
        process.terminate()
        assert process.stdout.readline() == "swallowed\n"
        assert process.wait(120) == 128 + signal.SIGTERM
        psutil.wait_procs([child], timeout=120)
        assert not child.is_running()


def test_a_slip_in_a_chapters_name_gets_a_hint(repo):
    with pytest.raises(UserError, match="no chapter is called toi; did you mean toy"):
        repo.choose(["toi"])


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("--seed 1 run toy", "options stand after the command: derived run toy --seed 1"),
        ("--help", ""),
        ("run toy --seed 1", ""),
        ("", ""),
    ],
)
def test_options_before_the_command_get_a_hint(words, hint):
    assert cli.misplaced(words.split()) == hint
