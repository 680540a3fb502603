"""Pages of the site that need not be opened again."""

import functools
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from derived.book import deliver
from derived.book.house import write_whole

WHEEL = re.compile(r"\+[0-9a-f]{8}(?=-py3-none-any\.whl)")  # of any edit of the package, on the card of every chapter
OF_PAGES = ("_images", "explorers", "cards", "search")  # a page loads of these what it names


@functools.cache
def _digest(path: Path, size: int, changed_at: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digest(path: Path) -> str:
    """A hash of a file, read once as long as it is the same."""
    state = path.stat()
    return _digest(path, state.st_size, state.st_mtime_ns)


@dataclass(frozen=True)
class Seen:
    """Which pages have passed which checks, and as what: a page that looks the same is not opened again.

    A note of its own for each check of a page. All pages are opened where CHECK_ALL is set, as in
    the workflow that publishes.
    """

    site: Path
    notes: Path
    browser: str  # its version

    def _key(self, name: str) -> str:
        """A hash of the page, the styles and scripts of the site, the pictures and explorers that the page names, these
        tests, what prints, and the browser."""
        text = WHEEL.sub("", (self.site / name).read_text("utf-8"))
        shared = [path for folder in ("_static", "vendor", "slides") for path in (self.site / folder).rglob("*.*")]
        own = [path for folder in OF_PAGES for path in (self.site / folder).glob("*.*")]
        files = [path for path in shared if path.suffix != ".html"]
        files += [path for path in own if path.relative_to(self.site).as_posix() in text]
        files += [*Path(__file__).parent.glob("*.py"), *Path(deliver.__path__[0]).glob("*.py")]
        parts = [digest(path) for path in sorted(files) if path.is_file()]
        return hashlib.sha256("\n".join([self.browser, name, *parts, text]).encode()).hexdigest()

    def _note(self, check: str, name: str) -> Path:
        return self.notes / f"{check}-{name.replace('/', '-')}"

    def changed(self, check: str, name: str) -> bool:
        """Whether a page has to be opened for a check."""
        note = self._note(check, name)
        return "CHECK_ALL" in os.environ or not note.is_file() or note.read_text("utf-8") != self._key(name)

    def once(self, check: str, names: Sequence[str], run: Callable[[], object]) -> None:
        """Make a check of pages, unless all of them look as they did when it passed."""
        if any(self.changed(check, name) for name in names):
            run()
            for name in names:
                self.passed(check, name)

    def passed(self, check: str, name: str) -> None:
        """Note that a page has passed a check as it is."""
        write_whole(self._note(check, name), self._key(name))
