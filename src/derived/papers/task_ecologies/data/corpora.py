"""Plain-text corpora: a file per language, Gutenberg's marks, lines of a Voynich transcription, pairs of Lisp chunks.

name      meaning
text      lower-case letters a to z and single spaces
chunk     at most 30 characters, cut at spaces, that overlap by about five; spaces dropped where asked
ids       a, b, ... are 0, 1, ...; 26 opens a text
"""

import re
import unicodedata
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from derived.lab.checks import check_count

LETTERS = "abcdefghijklmnopqrstuvwxyz"
START = re.compile(r"\*\*\* ?START OF TH(?:E|IS) PROJECT GUTENBERG EBOOK.*?\*\*\*", re.IGNORECASE | re.DOTALL)
END = re.compile(r"\*\*\* ?END OF TH(?:E|IS) PROJECT GUTENBERG EBOOK", re.IGNORECASE)


def read_corpus(path: str | Path) -> str:
    """The letters of a plain UTF-8 file: accents dropped, all but a to z made spaces, Gutenberg's frame cut off.

    ValueError for another encoding, and for a file in which no letter is left.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "alice_fr.txt"
    >>> _ = file.write_text("Où es-tu ?", encoding="utf-8")
    >>> read_corpus(file)
    'ou es tu'
    """
    text = plain(_decoded(Path(path)))
    if not text:
        raise ValueError(f"{path} holds no letter from a to z; give the text of a language in Latin letters")
    return text


def read_voynich(path: str | Path) -> str:
    """Lines of an IVTFF transcription: the part after <...>, lower-case EVA letters, all else as spaces."""
    lines = []
    for line in _decoded(Path(path)).splitlines():
        match = re.match(r"<[^>]*>\s+(.*)", line)
        if match and not line.startswith("#"):
            line = match[1].replace("<->", " ")  # a gap by a drawing; then the first of alternative readings
            lines.append(re.sub(r"<[^>]*>|\{[^}]*\}|\[([^:\]]*)[^\]]*\]", r"\1", line))
    text = re.sub(r"[^a-z]+", " ", " ".join(lines)).strip()
    if not text:
        raise ValueError(f"{path} holds no line '<page.line> letters'; give a transcription in IVTFF")
    return text


def read_pairs(balanced: str | Path, unbalanced: str | Path) -> list[tuple[str, str]]:
    """Chunks of two files, one a line, paired by the number of the line. ValueError where the numbers differ."""
    one, two = ([line for line in _decoded(Path(path)).splitlines() if line] for path in (balanced, unbalanced))
    if not one or len(one) != len(two):
        given = f"{balanced} has {len(one)} chunks and {unbalanced} {len(two)}"
        raise ValueError(f"{given}; give as many of each, one a line")
    return list(zip(one, two, strict=True))


def chunk_text(text: str, length: int = 30, overlap: int = 5, *, spaces: bool = False) -> list[str]:
    """Pieces of at most ``length`` characters cut at spaces; the next one begins about ``overlap`` before the end.

    A word longer than a piece is cut. ValueError for an overlap that leaves no way forward.

    >>> chunk_text("one two three four", length=9, overlap=3)
    ['onetwo', 'twothree', 'four']
    """
    check_count("length", length)
    check_count("overlap", overlap, least=0)
    if overlap >= length:
        raise ValueError(f"overlap = {overlap} and length = {length}; give an overlap below the length")
    pieces, start = [], 0
    while start < len(text):
        end = min(start + length, len(text))
        if end < len(text) and text[end] != " ":
            space = text.rfind(" ", start, end)
            end = space if space > start else end
        piece = text[start:end].strip()
        if piece:
            pieces.append(piece if spaces else piece.replace(" ", ""))
        if end == len(text):
            break
        back = text.rfind(" ", start + 1, max(end - overlap, start + 1) + 1) + 1
        start = back if start < back < end and _moves(text, back, end, length) else end
        while start < len(text) and text[start] == " ":
            start += 1
    return pieces


def _moves(text: str, start: int, end: int, length: int) -> bool:
    """Whether the piece that begins at ``start`` would reach beyond ``end``."""
    reach = min(start + length, len(text))
    return reach == len(text) or text[reach] == " " or text.rfind(" ", start, reach) > end


def letter_ids(chunks: list[str], length: int) -> Int[Tensor, "B T"]:
    """Chunks of at least ``length`` letters, cut to it, after the opening token; ValueError where none is that long.

    >>> letter_ids(["abc", "ab"], 3)
    tensor([[26,  0,  1,  2]])
    """
    rows = [[26, *map(LETTERS.index, chunk[:length])] for chunk in chunks if len(chunk) >= length]
    if not rows:
        raise ValueError(f"no chunk of at least {length} letters; give longer chunks or a smaller length")
    return torch.tensor(rows)


def _decoded(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f"byte {error.start} is {error.object[error.start]:#04x}"
        raise ValueError(f"{path} is not UTF-8 ({place}); convert it first, for instance with iconv -t UTF-8") from None


def plain(text: str) -> str:
    """The letters a to z of a text, lower case and without accents, all else as single spaces; no Gutenberg frame."""
    begun = START.search(text)
    text = text[begun.end() :] if begun else text
    ended = END.search(text)
    text = text[: ended.start()] if ended else text
    text = unicodedata.normalize("NFKD", text.lower().replace("ß", "ss").replace("æ", "ae").replace("œ", "oe"))
    text = "".join(each for each in text if not unicodedata.combining(each))
    return re.sub(r"[^a-z]+", " ", text).strip()
