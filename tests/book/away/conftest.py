"""A checkout with one paper whose experiment does what a file says, and a real sshd on loopback."""

import getpass
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import press
import pytest

EXPERIMENT = textwrap.dedent('''
    """Toy experiments, which do what files say."""

    import os
    import time
    from dataclasses import dataclass
    from pathlib import Path
    from typing import ClassVar

    import pandas as pd
    import torch

    from derived.lab.experiment import Experiment
    from derived.lab.rng import stream

    TOLD = Path(os.environ.get("TOLD", "."))


    @dataclass(frozen=True, kw_only=True)
    class Draws(Experiment):
        """Normal draws."""

        num: int = 5
        tiers: ClassVar = {"ci": {"num": 2}, "cpu": {}}
        tiny: ClassVar = {"num": 1}

        def conditions(self):
            return [{"shift": shift} for shift in range(4)]

        def run(self, condition, *, seed, device, dtype):
            with open(TOLD / "ran", "a") as file:
                file.write(f"{self.num}{condition['shift']} ")
            if self.num == 5 and condition["shift"] == 2 and (TOLD / "raise").exists():
                raise ArithmeticError("the third one")
            if self.num == 5 and (TOLD / "slow").exists():
                time.sleep(2)
            draw = torch.randn(self.num, generator=stream(seed, "draws", condition["shift"]), dtype=dtype)
            return pd.DataFrame({"value": draw.numpy() + condition["shift"]})


    @dataclass(frozen=True, kw_only=True)
    class Others(Draws):
        """The same, once more."""


    EXPERIMENTS = (Draws, Others)
''')
CLAIMS = '"""No claims."""\n\nfrom derived.papers.toy.draws import EXPERIMENTS as EXPERIMENTS\n\nCLAIMS = ()\n'


@pytest.fixture(scope="module")
def house(tmp_path_factory) -> Path:
    root = press.make_house(tmp_path_factory.mktemp("away"))
    press.write_chapter(root, "toy", press.report_cell())
    press.write_toc(root, "toy")
    package = root / "src/derived/papers/toy"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""Toy."""\n')
    (package / "draws.py").write_text(EXPERIMENT)
    (package / "claims.py").write_text(CLAIMS)
    return root


@dataclass
class Host:
    """A machine that one can log in to, with a home of its own."""

    home: Path
    house: Path

    @property
    def told(self) -> Path:
        return self.home / "told"

    def ran(self) -> list[str]:
        """What ran there at tier cpu since it was last asked."""
        file = self.told / "ran"
        found = sorted(each for each in file.read_text().split() if each[0] == "5") if file.exists() else []
        file.unlink(missing_ok=True)
        return found

    def start(self, *experiments: str, **options) -> subprocess.Popen:
        """Start to record on this host, which the command line finds by the name ``there``."""
        environment = press.environment(self.house) | {"PATH": f"{self.home / 'bin'}:{os.environ['PATH']}"}
        order = ["record", "toy", *experiments, "--jobs", "1", "--on", "ssh:there"]
        command = [sys.executable, "-m", "derived.book.cli", *order]
        return subprocess.Popen(command, cwd=self.house, env=environment, text=True, **options)

    def record(self, *experiments: str) -> subprocess.CompletedProcess:
        with self.start(*experiments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            said, complained = running.communicate(timeout=400)
        return subprocess.CompletedProcess(experiments, running.returncode, said, complained)


@pytest.fixture(scope="module")
def host(house, tmp_path_factory):
    """A real sshd; what pip would fetch there is on its path already, so nothing is downloaded."""
    server = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if not server or not shutil.which("ssh"):
        pytest.skip("there is no sshd here; on Debian: apt-get install openssh-server")
    home = tmp_path_factory.mktemp("home")
    for folder in ("bin", "told"):
        (home / folder).mkdir()
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / key], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    python = f"{home}/bin:{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin"
    packages = sysconfig.get_paths()["purelib"]
    (home / "sshd").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {home}/host\nAuthorizedKeysFile {home}/user.pub\n"
        f"StrictModes no\nUsePAM no\nPidFile none\n"
        f"SetEnv HOME={home} PATH={python} PYTHONPATH={packages} TOLD={home}/told\n"
    )
    (home / "config").write_text(
        f"Host closed\n Port 1\nHost *\n HostName 127.0.0.1\n Port {port}\n User {getpass.getuser()}\n"
        f" IdentityFile {home}/user\n IdentitiesOnly yes\n UserKnownHostsFile {home}/known\n"
        " StrictHostKeyChecking accept-new\n LogLevel ERROR\n"
    )
    (home / "bin/ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {home}/config "$@"\n')
    (home / "bin/ssh").chmod(0o755)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where sshd puts itself apart
    with subprocess.Popen([server, "-D", "-e", "-f", home / "sshd"], stderr=subprocess.PIPE, text=True) as running:
        wait_for(port, running)
        yield Host(home, house)
        running.terminate()


def wait_for(port: int, running: subprocess.Popen) -> None:
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert running.poll() is None, running.stderr.read()
        time.sleep(0.1)
    raise AssertionError("sshd does not answer")
