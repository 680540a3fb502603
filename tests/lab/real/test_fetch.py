"""What is fetched is what was pinned, whole or not at all; a source that does not answer stops nothing."""

import dataclasses
import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from derived.lab.real import fetch, pinned
from derived.lab.real.pinned import PACKAGES, Package


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(pinned, "root", lambda: tmp_path / "real")
    monkeypatch.setattr(fetch, "root", lambda: tmp_path / "real")
    return tmp_path


def wheel(folder: Path, **files: str) -> Path:
    path = folder / "toy-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        for name, text in files.items():
            file.writestr(name.replace("__", "/"), text)
    return path


def client(monkeypatch, source: str, brings: Path | None, says: str = "") -> None:
    """A client that copies a file into the working directory, or fails with a word."""
    code = f"import shutil, sys; shutil.copy({str(brings)!r}, '.')" if brings else f"import sys; sys.exit({says!r})"
    monkeypatch.setitem(fetch.CLIENTS, source, [sys.executable, "-c", code])


def package(file: Path, **changes) -> Package:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    facts = {"name": "toy", "source": "pip", "files": {"toy==1": digest}, "offer": "default", "licence": "MIT"}
    return Package(**facts | {"what": "a toy", "chapters": ("toy",)} | changes)


def test_a_package_is_fetched_once_and_only_what_is_wanted_of_it(place, monkeypatch):
    file = wheel(place, toy__data="1", toy__code="2")
    one = package(file, keep=("*/data",))
    client(monkeypatch, "pip", file)
    said = []
    assert not one.here
    assert fetch.fetch([one], said.append) == []
    assert one.here
    assert [path.name for path in (one.place / "toy").iterdir()] == ["data"]
    assert [path.name for path in pinned.root().iterdir()] == ["toy"], "nothing is left beside it"
    client(monkeypatch, "pip", None, "not again")
    fetch.fetch([one], said.append)
    assert said == ["toy: fetched (a toy; MIT)", "toy: here"]


def test_another_version_takes_the_place_of_the_old_one(place, monkeypatch):
    old = wheel(place, data="old")
    client(monkeypatch, "pip", old)
    fetch.fetch([package(old)], lambda said: None)
    new = wheel(place, data="new")
    one = package(new, files={"toy==2": hashlib.sha256(new.read_bytes()).hexdigest()})
    assert not one.here
    fetch.fetch([one], lambda said: None)
    assert (one.place / "data").read_text() == "new"


def test_a_file_of_another_checksum_is_refused_and_leaves_nothing(place, monkeypatch):
    file = wheel(place, data="1")
    one = package(file)
    client(monkeypatch, "pip", wheel(place, data="2"))
    said = []
    assert fetch.fetch([one], said.append) == ["toy"]
    assert "REFUSED" in said[0]
    assert not any(pinned.root().iterdir())


def test_what_cannot_be_reached_is_one_line_and_the_rest_goes_on(place, monkeypatch):
    file = wheel(place, data="1")
    client(monkeypatch, "debian", None, "E: Unable to locate package toy")
    monkeypatch.setitem(fetch.CLIENTS, "npm", ["no-such-client"])
    client(monkeypatch, "pip", file)
    three = [package(file, name=source, source=source) for source in ("debian", "npm", "pip")]
    said = []
    assert fetch.fetch(three, said.append) == []
    assert said == [
        "debian: not fetched, the rest goes on: E: Unable to locate package toy",
        "npm: not fetched, the rest goes on: no-such-client is not on this machine",
        "pip: fetched (a toy; MIT)",
    ]


def test_a_client_that_hangs_is_given_up(place, monkeypatch):
    monkeypatch.setattr(fetch, "SECONDS", 0.2)
    monkeypatch.setitem(fetch.CLIENTS, "pip", [sys.executable, "-c", "import time; time.sleep(60)"])
    with pytest.raises(fetch.Unreachable, match="did not answer"):
        fetch.get(package(wheel(place, data="1")))


@pytest.mark.parametrize("kind", ["npm", "debian"])
def test_archives_of_other_clients_are_read_and_cannot_write_outside(place, kind):
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w:gz") as archive:
        for name in ("./package/data", "./package/code"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    file = place / "toy.tgz"
    file.write_bytes(tar.getvalue())
    if kind == "debian":
        if fetch.shutil.which("ar") is None or fetch.shutil.which("dpkg-deb") is None:
            pytest.skip("this machine has no dpkg-deb")
        file.rename(place / "data.tar.gz")
        (place / "debian-binary").write_text("2.0\n")
        (place / "control.tar.gz").write_bytes(tar.getvalue())
        file = place / "toy.deb"
        parts = ["debian-binary", "control.tar.gz", "data.tar.gz"]
        subprocess.run(["ar", "rc", str(file), *parts], cwd=place, check=True)
    fetch.unpack(file, place / "into", ("package/d*",))
    assert [path.name for path in (place / "into/package").iterdir()] == ["data"]
    with tarfile.open(place / "bad.tgz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("../outside"), io.BytesIO())
    with pytest.raises(tarfile.OutsideDestinationError):
        fetch.unpack(place / "bad.tgz", place / "into", ("*",))


def test_what_is_offered_by_default_is_chosen_and_the_rest_where_it_is_wanted():
    def offers(**wanted: bool) -> set[str]:
        return {one.offer for one in pinned.chosen(**wanted)}

    assert offers() == {"default"}
    assert offers(optional=True) == {"default", "optional"}
    assert offers(terms=True) == {"default", "terms"}
    [refused] = [one for one in PACKAGES if one.offer == "terms"][:1]
    with pytest.raises(ValueError, match=f"^{refused.name} has its own terms, .*: --accept-terms$"):
        pinned.chosen([refused.name])


def test_what_is_not_here_says_how_to_fetch_it():
    with pytest.raises(FileNotFoundError, match=r"^not here: make real \(rxnmapper\)$"):
        pinned.path("rxnmapper")
    with pytest.raises(KeyError):
        pinned.path("nosuch")


@pytest.mark.parametrize("one", PACKAGES, ids=lambda one: one.name)
def test_the_list_is_whole(one):
    assert all(len(digest) == 64 and int(digest, 16) for digest in one.files.values())
    mark = {"pip": "==", "debian": "=", "npm": "@"}[one.source]
    assert all(mark in asked[1:] for asked in one.files)
    for text in (one.licence, one.what, *one.chapters):
        assert text
    assert dataclasses.replace(one, files={"other==1": "0" * 64}).mark != one.mark
