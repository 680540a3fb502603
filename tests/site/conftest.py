"""The built site as the tests of this folder see it. They fail where there is none: `make site` comes first."""

import functools
import http.server
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[2]
SITE = Path(os.environ.get("SITE", ROOT / "_build/html"))
sys.path.insert(0, str(Path(__file__).parent))  # a file of tests may use what another defines


@dataclass(frozen=True)
class Page:
    """One page: its address in the site and its markup, parsed when a test asks for it."""

    name: str
    file: Path = field(repr=False)

    @functools.cached_property
    def soup(self) -> BeautifulSoup:
        return BeautifulSoup(self.file.read_text("utf-8"), "html.parser")

    @property
    def article(self) -> BeautifulSoup:
        return self.soup.select_one("article.bd-article")

    @property
    def is_chapter(self) -> bool:
        return self.name.startswith("notebooks/")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of a page or of a deck runs once for each, the costly parts first."""
    if "page_name" in metafunc.fixturenames:
        paths = [path for part in ("notebooks", "claims", "book") for path in sorted(SITE.glob(f"{part}/*.html"))]
        metafunc.parametrize("page_name", [*(f"{path.parent.name}/{path.name}" for path in paths), "search.html"])
    if "deck" in metafunc.fixturenames:
        metafunc.parametrize("deck", [path.parent.name for path in sorted(SITE.glob("teach/*/slides.html"))])


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the site; the variable SITE names another one than _build/html."""
    if not (SITE / "index.html").is_file():
        pytest.fail(f"there is no site at {SITE}: run make site")
    return SITE.resolve()


@pytest.fixture(scope="session")
def every_page(site: Path) -> list[Page]:
    """All pages, those that Sphinx makes by itself too."""
    names = sorted(str(path.relative_to(site)) for path in site.rglob("*.html") if "_static" not in path.parts)
    return [Page(name, site / name) for name in names]


@pytest.fixture(scope="session")
def pages(every_page: list[Page]) -> list[Page]:
    """The pages that somebody wrote."""
    return [page for page in every_page if page.name.startswith(("book/", "notebooks/", "claims/"))]


@pytest.fixture(scope="session")
def chapters(pages: list[Page]) -> list[Page]:
    """The chapters."""
    found = [page for page in pages if page.is_chapter]
    assert found, "the site has no chapter"
    return found


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args) -> None:
        pass


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The site served on this machine."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=site))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """Chromium without a network: no name resolves but this machine's own address."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    flags += ["--disable-sync", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    with sync_playwright() as playwright:
        if found is None and not Path(playwright.chromium.executable_path).is_file():
            pytest.fail("there is no Chromium: apt install chromium, or playwright install chromium")
        chromium = playwright.chromium.launch(executable_path=found, args=flags, timeout=120_000)
        yield chromium
        chromium.close()
