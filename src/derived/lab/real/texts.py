"""Real texts that several chapters read: novels, speeches, genes of antibodies.

Each raises FileNotFoundError, with the command that fetches it, where its package is not here (``pinned.path``).
"""

import ast
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from derived.lab.real.pinned import path

_STRINGS = bytes.fromhex("00000010")  # R's mark of a vector of strings


@dataclass(frozen=True)
class Speech:
    """A State of the Union speech; ``party`` as its source has it."""

    year: int
    name: str
    party: str
    text: str


def austen() -> dict[str, str]:
    """The six novels of Jane Austen by title (package ``austen``), lines joined as printed."""
    content = (path("austen") / "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb").read_bytes()
    books = map(_strings, _unpacked(content))
    return {lines[0].title().replace(" And ", " and "): "\n".join(lines) for lines in books}


def _unpacked(content: bytes) -> Iterator[bytes]:
    """The objects of R's lazy-load database: each four bytes, its length unpacked, and a zlib stream."""
    while content:
        stream = zlib.decompressobj()
        yield stream.decompress(content[4:])
        content = stream.unused_data


def _strings(serialised: bytes) -> list[str]:
    """The first vector of strings in an object that R serialised (XDR): flags, length, and bytes of each."""
    start = serialised.find(_STRINGS) + 4
    count, start = int.from_bytes(serialised[start : start + 4], "big"), start + 4
    strings = []
    for _ in range(count):
        length = int.from_bytes(serialised[start + 4 : start + 8], "big")
        strings.append(serialised[start + 8 : start + 8 + length].decode())
        start += 8 + length
    return strings


def speeches() -> list[Speech]:
    """The State of the Union speeches since 1790 (package ``stdlib``), by year."""
    files = sorted((path("stdlib") / "package/sotu/data").glob("*.json"))
    return [Speech(**json.loads(file.read_text("utf-8"))) for file in files if file.stem[:4].isdigit()]


def antibody_genes(chain: str, species: str = "human") -> Mapping[str, str]:
    """The variable genes of a chain of antibodies (H heavy, K and L light) by name, their first alleles alone, as amino
    acids (package ``anarci``)."""
    (table,) = (
        ast.literal_eval(line.value)
        for line in ast.parse((path("anarci") / "anarci/germlines.py").read_text("utf-8")).body
        if isinstance(line, ast.Assign) and isinstance(line.value, ast.Dict)
    )
    genes = {name: aligned.replace("-", "") for name, aligned in table["V"][chain][species].items()}
    return {name: gene for name, gene in genes.items() if name.endswith("*01")}
