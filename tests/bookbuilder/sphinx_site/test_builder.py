"""The site builder ends with its driver, and at its limit."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
import toybook

from bookbuilder.paths import UserError
from bookbuilder.sphinx_site import builder

DRIVER = """
import signal
from pathlib import Path
from bookbuilder.cli import interrupt
from bookbuilder.sphinx_site.builder import build_html
for each in (signal.SIGINT, signal.SIGTERM):
    signal.signal(each, interrupt)
build_html(*[Path()] * 3)
"""


@pytest.fixture
def endless(tmp_path, monkeypatch):
    """A Jupyter Book that never ends."""
    (tmp_path / "jupyter_book/cli").mkdir(parents=True)
    for package in ("jupyter_book", "jupyter_book/cli"):
        (tmp_path / package / "__init__.py").touch()  # or the real one, elsewhere on the path, is found
    (tmp_path / "jupyter_book/cli/main.py").write_text("def main():\n    import time\n    time.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(toybook.ROOT / "src")]))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_stopped_driver_takes_the_site_builder_along(endless, how):
    driver = subprocess.Popen([sys.executable, "-c", DRIVER])
    deadline = time.monotonic() + 300
    while not (family := psutil.Process(driver.pid).children()) and time.monotonic() < deadline:
        time.sleep(0.1)
    driver.send_signal(how)
    assert driver.wait(120) != 0
    _, alive = psutil.wait_procs(family, timeout=120)
    assert family
    assert not alive


def test_a_site_builder_that_never_ends_is_stopped(endless, monkeypatch, tmp_path):
    monkeypatch.setattr(builder, "LIMIT", 3)
    with pytest.raises(UserError, match="stopped at its limit of 3 s"):
        builder.build_html(tmp_path, tmp_path, tmp_path)
