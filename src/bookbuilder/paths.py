"""Where things lie in a checkout, which chapters there are, and the errors that a user can cause."""

import contextlib
import difflib
import importlib.util
import os
import platform
import runpy
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from derived.lab.names import DEVICES, TIERS
from derived.lab.sources import PACKAGE_ROOT

if TYPE_CHECKING:
    from bookbuilder.contents import Contents

NVIDIA_DEVICE = Path("/dev/nvidiactl")


class UserError(Exception):
    """An error shown as one clear line, without a traceback."""


@dataclass(frozen=True)
class Repo:
    """The folders of one checkout. Everything under ``build`` can be deleted at any time."""

    root: Path

    @property
    def build(self) -> Path:
        return self.root / "_build"

    @property
    def site(self) -> Path:
        return self.build / "html"

    @property
    def ledger(self) -> Path:
        return self.root / "results" / "ledger.json"

    @property
    def lock(self) -> Path:
        return self.root / "requirements.lock"

    def notebook(self, slug: str) -> Path:
        """The source of a chapter or an essay."""
        return self.root / ("book" if self.is_essay(slug) else "notebooks") / f"{slug}.ipynb"

    def executed(self, slug: str) -> Path:
        return self.build / "executed" / self.notebook(slug).relative_to(self.root)

    def is_essay(self, slug: str) -> bool:
        """Whether a notebook is one of the book's own pages, which makes no claim."""
        return (self.root / "book" / f"{slug}.ipynb").is_file()

    def findings(self, slug: str) -> Path:
        return self.build / "findings" / f"{slug}.json"

    def chapters(self) -> list[str]:
        """The slugs of the papers in the order of the book."""
        return [*self._contents().chapters]

    def essays(self) -> list[str]:
        """The book's own pages that are notebooks and run as chapters do."""
        return [page for part in self._contents().parts for page in part.tree() if self.is_essay(page)]

    def _contents(self) -> "Contents":
        from bookbuilder import contents  # which needs this module's errors

        return contents.read(self.root)

    def number(self, slug: str) -> int:
        """The number of a chapter in the whole book."""
        return 1 + self.chapters().index(slug)

    def choose(self, slugs: Sequence[str], essays: bool = False) -> list[str]:
        """The named chapters, or all of them if none is named; with ``essays`` those may be named as well."""
        chapters = self.chapters()
        absent = [slug for slug in chapters if not self.notebook(slug).is_file()]
        if absent:
            raise UserError(f"book/chapters.yml: it names {absent[0]}, but notebooks/{absent[0]}.ipynb is not there")
        chapters += self.essays() if essays else []
        unknown = [slug for slug in slugs if slug not in chapters]
        if unknown:
            close = [name for slug in unknown for name in difflib.get_close_matches(slug, chapters, 1)]
            hint = f"; did you mean {', '.join(close)}?" if close else f"; there is {', '.join(chapters)}"
            raise UserError(f"no chapter is called {', '.join(unknown)}{hint}")
        return [slug for slug in chapters if slug in slugs or not slugs]


def find_repo() -> Repo:
    """The checkout that this package is installed from."""
    root = PACKAGE_ROOT.parents[1]
    if not (root / "book/chapters.yml").is_file():
        raise UserError("the book is built from a clone of its repository; this is only the installed package")
    return Repo(root)


def validate_options(tier: str, device: str) -> None:
    """Refuse an unknown tier or device before anything starts."""
    if tier not in TIERS:
        raise UserError(f"tier {tier!r} is unknown: use {', '.join(TIERS)}")
    if device not in DEVICES:
        raise UserError(f"device {device!r} is unknown: use {', '.join(DEVICES)}")
    if device == "cuda" and not has_cuda():
        raise UserError(
            "device 'cuda' was asked for, but there is no NVIDIA device or this torch is not built for CUDA: "
            "use auto or cpu"
        )


def has_cuda() -> bool:
    """Tell, without importing torch, whether there is a usable NVIDIA device and a torch built for CUDA."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1")
    return NVIDIA_DEVICE.exists() and visible and _torch_cuda() is not None


def _torch_cuda() -> str | None:
    """Read the CUDA version of the installed torch; None for a CPU build."""
    [folder] = importlib.util.find_spec("torch").submodule_search_locations
    return runpy.run_path(f"{folder}/version.py")["cuda"]


def processor() -> str:
    """Read the processor's name where the system has one."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def cell_name(number: int, source: str | list[str]) -> str:
    """Name a cell by its number in the source, from 1, and its first line."""
    first = next((line for line in "".join(source).splitlines() if line.strip()), "")
    return f"cell {number} ({first.strip()[:60]})"


def end_children(parent: int | None = None) -> None:
    """End every process that a process (this one, if none is given) started, directly or not."""
    for child in psutil.Process(parent).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()


def exit_with_parent(parent: int) -> None:
    """End this process and its children when its parent dies.

    A kernel watches its parent too, but compiled code can block that.
    """

    def wait() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        end_children()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def write_whole(path: Path, text: str) -> None:
    """Write a file under a temporary name and rename it, so that it is never seen half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(draft, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
