"""Readers of the real data sets, as their makers publish them: ListOps TSV, CIFAR-10 binary, IMDB folders.

set        format
ListOps    a line "Source<TAB>Target", then one expression and its digit per line, round brackets allowed
CIFAR-10   data_batch_1.bin .. _5.bin, test_batch.bin: 10000 records of a label byte and 3 x 1024 bytes, R, G, B planes
IMDB       {train,test}/{pos,neg}/<id>_<rating>.txt, 12500 each, UTF-8 with "<br />" tags

Nothing is downloaded and nothing is unpickled. A damaged file raises ValueError with its name and what is wrong.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from derived.lab.checks import check_choice, check_count

from .listops import evaluate_tokens, from_text
from .sequences import Sequences, encode_texts

CIFAR_FILES = {"train": tuple(f"data_batch_{i}.bin" for i in range(1, 6)), "test": ("test_batch.bin",)}
CIFAR_PIXELS, CIFAR_CLASSES = 32 * 32, 10
GREY = (0.2989, 0.5870, 0.1140)  # of R, G, B, as in Long Range Arena's pipeline


def check_md5(path: Path | str, expected: str) -> None:
    """Raise ValueError unless the file has this MD5: otherwise it is another file or a damaged one."""
    path = _existing(path)
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    if digest.hexdigest() != expected.lower():
        raise ValueError(f"{path} has MD5 {digest.hexdigest()}, not {expected}; fetch the published file again")


def _existing(path: Path | str) -> Path:
    if not Path(path).exists():
        raise ValueError(f"{path} does not exist; give the place where the published archive was unpacked")
    return Path(path)


def read_listops_tsv(path: Path | str, max_length: int = 2000, *, md5: str | None = None) -> Sequences:
    """Expressions and digits, checked one by one: whole, of at most ``max_length`` symbols, and equal to their value.

    Raises ValueError with the line for a missing header or tab, an unknown symbol, brackets that do not match, a target
    that is not the expression's value, and an expression that is too long.
    """
    check_count("max_length", max_length)
    if md5 is not None:
        check_md5(path, md5)
    lines = _existing(path).read_text(encoding="utf-8").splitlines()
    if not lines or lines[0].split("\t") != ["Source", "Target"]:
        raise ValueError(f"{path}, line 1: no header; give a file that begins with Source<TAB>Target")
    if len(lines) == 1:
        raise ValueError(f"{path} holds a header and no expression; it may be truncated")
    rows, labels = np.zeros((len(lines) - 1, max_length), dtype=np.int64), []
    for number, line in enumerate(lines[1:], start=2):
        try:
            codes, label = _expression(line, max_length)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        rows[number - 2, : len(codes)] = codes
        labels.append(label)
    tokens = torch.from_numpy(rows)
    return Sequences(tokens, (tokens > 0).sum(dim=-1), torch.tensor(labels))


def _expression(line: str, max_length: int) -> tuple[list[int], int]:
    source, tab, target = line.partition("\t")
    if not tab or not re.fullmatch(r"[0-9]", target):
        raise ValueError(f"target {target!r}; give an expression, a tab and one digit (a truncated line looks so)")
    codes = from_text(source)
    if len(codes) > max_length:
        raise ValueError(f"{len(codes)} symbols; give max_length >= {len(codes)}")
    if evaluate_tokens(codes) != int(target):
        raise ValueError(f"target {target}, but the expression's value is {evaluate_tokens(codes)}")
    return codes, int(target)


def read_cifar10(
    folder: Path | str,
    split: Literal["train", "test"],
    *,
    records: int = 10_000,
    md5: Mapping[str, str] | None = None,
) -> Sequences:
    """Grey pictures as 1024 codes 0 .. 255 in raster order, grey = .2989 R + .5870 G + .1140 B, rounded.

    ``records`` is the number in each file; ``md5`` maps file names to checksums. Raises ValueError for a missing or
    truncated file, a wrong checksum and a label above 9.
    """
    check_choice("split", split, tuple(CIFAR_FILES))
    check_count("records", records)
    parts = []
    for name in CIFAR_FILES[split]:
        path = _existing(Path(folder) / name)
        if md5 is not None and name in md5:
            check_md5(path, md5[name])
        data = np.fromfile(path, dtype=np.uint8)
        if len(data) != records * (1 + 3 * CIFAR_PIXELS):
            wanted = records * (1 + 3 * CIFAR_PIXELS)
            raise ValueError(f"{path} has {len(data)} bytes, not {wanted}; it is truncated or of another format")
        parts.append(data.reshape(records, -1))
    table = np.concatenate(parts)
    if table[:, 0].max() >= CIFAR_CLASSES:
        raise ValueError(f"{folder}: label {table[:, 0].max()} at record {int(table[:, 0].argmax())}; labels go to 9")
    planes = table[:, 1:].reshape(len(table), 3, CIFAR_PIXELS)
    grey = sum(weight * planes[:, channel].astype(np.float64) for channel, weight in enumerate(GREY))
    tokens = torch.from_numpy(np.rint(grey).astype(np.int64))
    lengths = torch.full((len(tokens),), CIFAR_PIXELS)
    return Sequences(tokens, lengths, torch.from_numpy(table[:, 0].astype(np.int64)))


def read_imdb(
    folder: Path | str, split: Literal["train", "test"], length: int = 1024, *, per_class: int | None = 12_500
) -> Sequences:
    """Reviews as bytes, label 1 for pos, tags "<br />" as line ends, cut or padded to ``length``, in the order of ids.

    ``per_class`` is the number of files in each folder, None for any. Raises ValueError for a missing folder or file, a
    name that is not <id>_<rating>.txt, a rating of the other class, an empty review and bytes that are not UTF-8.
    """
    check_choice("split", split, ("train", "test"))
    check_count("length", length)
    texts, labels = [], []
    for label, name in enumerate(("neg", "pos")):
        place = _existing(Path(folder) / split / name)
        paths = sorted(place.glob("*.txt"), key=lambda path: _review_id(path, name))
        if not paths or (per_class is not None and len(paths) != per_class):
            raise ValueError(f"{place} holds {len(paths)} reviews, not {per_class or 'at least one'}; unpack it again")
        texts += [_review(path) for path in paths]
        labels += [label] * len(paths)
    return encode_texts(texts, length, torch.tensor(labels))


def _review_id(path: Path, name: str) -> int:
    match = re.fullmatch(r"(\d+)_(\d+)", path.stem)
    if match is None or (int(match[2]) > 5) != (name == "pos"):
        wanted = "7 to 10" if name == "pos" else "1 to 4"
        raise ValueError(f"{path}: give <id>_<rating>.txt with a rating of {wanted}")
    return int(match[1])


def _review(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no UTF-8 at byte {error.start}; it may be truncated") from None
    if not text.strip() or "\0" in text:
        raise ValueError(f"{path} is empty or holds a NUL; unpack it again")
    return re.sub(r"<br\s*/?>", "\n", text)
