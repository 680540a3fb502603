"""What each page of a site weighs and costs: python tests/site/weigh.py [SITE ...]; two sites stand side by side.

MB        all that a page loads before anybody scrolls, before compression, without Plotly's shared script and MathJax
elements  of the page when it rests
s         of Chromium's main thread until then, the median of three visits

The sites take turns, so that a busy machine is as unkind to one as to the other.
"""

import shutil
import statistics
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

SHARED = ("plotly.min.js", "/mathjax/")
FLAGS = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


class Scale:
    """Weighs what a tab opens from a disk; made before the tab goes there."""

    def __init__(self, tab: Page) -> None:
        self.tab = tab
        self.loaded: set[str] = set()
        tab.on("request", lambda request: self.loaded.add(unquote(urlsplit(request.url).path)))
        self.session = tab.context.new_cdp_session(tab)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def read(self) -> tuple[float, int, float]:
        """Megabytes loaded, elements, and seconds of the main thread, when the page rests."""
        self.tab.wait_for_timeout(1500)
        metrics = {each["name"]: each["value"] for each in self.session.send("Performance.getMetrics")["metrics"]}
        files = [Path(path) for path in self.loaded if not any(part in path for part in SHARED)]
        size = sum(file.stat().st_size for file in files if file.is_file())
        return size / 1e6, self.tab.evaluate("document.querySelectorAll('*').length"), metrics["TaskDuration"]


def weigh(browser: Browser, page: Path) -> tuple[float, int, float]:
    """What a scale reads of one visit."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    scale = Scale(tab)
    tab.goto(page.as_uri(), wait_until="load")
    found = scale.read()
    context.close()
    return found


def main(sites: list[Path]) -> None:
    """Print a line for each page that the first site has."""
    paths = [path for part in ("book", "notebooks") for path in sorted((sites[0] / part).glob("*.html"))]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name in (path.relative_to(sites[0]) for path in paths):
            visits = [[weigh(browser, site / name) for site in sites] for _ in range(3)]
            medians = [
                [statistics.median(each) for each in zip(*taken, strict=True)] for taken in zip(*visits, strict=True)
            ]
            print(f"{name!s:40}", *(f"{mb:6.2f} MB {nodes:6.0f} elements {cpu:5.2f} s" for mb, nodes, cpu in medians))
        browser.close()


if __name__ == "__main__":
    main([Path(argument).resolve() for argument in sys.argv[1:]] or [Path("_build/html").resolve()])
