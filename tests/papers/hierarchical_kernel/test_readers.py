"""The readers of real files, on small files made in the same formats."""

import hashlib
import itertools

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.data import readers
from derived.papers.hierarchical_kernel.data.listops import ListOps, to_text
from derived.papers.hierarchical_kernel.data.readers import check_md5, read_cifar10, read_imdb, read_listops_tsv


def read(review: torch.Tensor, length: int) -> str:
    return bytes(review[:length].tolist()).decode()


def test_listops_files(tmp_path):
    drawn = ListOps(min_length=5, max_length=60).sample(30, stream(0, "tsv"))
    texts = [to_text(row) for row in drawn.tokens.numpy()]
    texts[0] = "( ( ( ( [MAX 2 ) 9 ) ( ( [MIN 1 ) ] ) ) ] )"  # the curried pairs of the original files
    lines = [f"{text}\t{label}" for text, label in zip(texts, drawn.labels.tolist(), strict=True)]
    lines[0] = f"{texts[0]}\t9"
    path = tmp_path / "basic_test.tsv"
    path.write_text("Source\tTarget\n" + "\n".join(lines) + "\n")
    found = read_listops_tsv(path, 59, md5=hashlib.md5(path.read_bytes()).hexdigest())
    assert torch.equal(found.tokens[1:], drawn.tokens[1:])
    assert torch.equal(found.lengths[1:], drawn.lengths[1:])
    assert torch.equal(found.labels[1:], drawn.labels[1:])
    assert to_text(found.tokens[0]) == "[MAX 2 9 [MIN 1 ] ]"
    with pytest.raises(ValueError, match=r"has MD5 .* not 00"):
        read_listops_tsv(path, md5="00")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: no header"),
        ("[MAX 1 2 ]\t2\n", "line 1: no header"),
        ("Source\tTarget\n", "no expression; it may be truncated"),
        ("Source\tTarget\n[MAX 1 2 ]\t2\n[MAX 1", "line 3: target ''.*truncated"),
        ("Source\tTarget\n[MAX 1 2 ]\t2\n[MAX 1 2 ]\t", "line 3: target ''"),
        ("Source\tTarget\n[MAX 1 2 ]\t12\n", "line 2: target '12'"),
        ("Source\tTarget\n[MAX 1 2\t2\n", "line 2: 1 list.*never closed"),
        ("Source\tTarget\n[MAX 1 2 ] ]\t2\n", "line 2: the expression ends at symbol 3"),
        ("Source\tTarget\n[AVG 1 2 ]\t2\n", r"line 2: symbol '\[AVG' is unknown"),
        ("Source\tTarget\n[MAX 1 2 ]\t3\n", "line 2: target 3, but the expression's value is 2"),
        ("Source\tTarget\n[MAX 1 2 3 4 5 ]\t5\n", "line 2: 7 symbols; give max_length >= 7"),
    ],
)
def test_damaged_listops_files_are_named(tmp_path, content, message):
    path = tmp_path / "bad.tsv"
    path.write_text(content)
    with pytest.raises(ValueError, match=f"bad.tsv.*{message}"):
        read_listops_tsv(path, 6)


def write_cifar(folder, records: int = 4) -> np.ndarray:
    """Six small files in the binary format; returns the training records."""
    draws = np.random.default_rng(int(torch.randint(2**31, (), generator=stream(0, "cifar"))))
    made = []
    for name in itertools.chain(*readers.CIFAR_FILES.values()):
        table = draws.integers(0, 256, (records, 3073), dtype=np.uint8)
        table[:, 0] %= 10
        table.tofile(folder / name)
        made.append(table)
    return np.concatenate(made[:5])


def test_cifar_files(tmp_path):
    table = write_cifar(tmp_path)
    found = read_cifar10(tmp_path, "train", records=4)
    assert found.tokens.shape == (20, 1024)
    assert found.labels.tolist() == table[:, 0].tolist()
    for record, pixel in ((0, 0), (7, 33), (19, 1023)):
        red, green, blue = (int(table[record, 1 + 1024 * channel + pixel]) for channel in range(3))
        assert int(found.tokens[record, pixel]) == round(0.2989 * red + 0.5870 * green + 0.1140 * blue)
    assert read_cifar10(tmp_path, "test", records=4).tokens.shape == (4, 1024)
    digest = hashlib.md5((tmp_path / "test_batch.bin").read_bytes()).hexdigest()
    read_cifar10(tmp_path, "test", records=4, md5={"test_batch.bin": digest})


def test_damaged_cifar_files_are_named(tmp_path):
    write_cifar(tmp_path)
    with pytest.raises(ValueError, match="has MD5"):
        read_cifar10(tmp_path, "test", records=4, md5={"test_batch.bin": "0" * 32})
    with pytest.raises(ValueError, match="12292 bytes, not 30730000; it is truncated"):
        read_cifar10(tmp_path, "train")
    path = tmp_path / "data_batch_3.bin"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=r"data_batch_3\.bin has 12291 bytes"):
        read_cifar10(tmp_path, "train", records=4)
    path.write_bytes(bytes([10]) + whole[1:])
    with pytest.raises(ValueError, match="label 10 at record 8"):
        read_cifar10(tmp_path, "train", records=4)
    path.unlink()
    with pytest.raises(ValueError, match=r"data_batch_3\.bin does not exist"):
        read_cifar10(tmp_path, "train", records=4)
    with pytest.raises(ValueError, match="split = 'valid'"):
        read_cifar10(tmp_path, "valid")


def write_imdb(folder):
    for split in ("train", "test"):
        for name, ratings in (("pos", (7, 10)), ("neg", (1, 4))):
            place = folder / split / name
            place.mkdir(parents=True)
            for i, rating in enumerate(ratings):
                (place / f"{i + 9}_{rating}.txt").write_text(f"{name} {i}<br /><br />Très bon.")


def test_imdb_folders(tmp_path):
    write_imdb(tmp_path)
    found = read_imdb(tmp_path, "train", 32, per_class=2)
    assert found.labels.tolist() == [0, 0, 1, 1]
    assert read(found.tokens[2], int(found.lengths[2])) == "pos 0\n\nTrès bon."
    assert int(found.lengths[2]) == len("pos 0\n\nTrès bon.".encode())
    assert read(found.tokens[1], 5) == "neg 1"  # 9 before 10: by number, not by letter
    assert read_imdb(tmp_path, "test", 4, per_class=None).lengths.tolist() == [4] * 4


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda place: (place / "9_7.txt").write_bytes(b"Tr\xc3"), "no UTF-8 at byte 2; it may be trunc"),
        (lambda place: (place / "9_7.txt").write_text(" \n"), "empty"),
        (lambda place: (place / "9_7.txt").write_text("a\0b"), "NUL"),
        (lambda place: (place / "9_7.txt").rename(place / "9_3.txt"), "rating of 7 to 10"),
        (lambda place: (place / "9_7.txt").rename(place / "nine.txt"), "give <id>_<rating>.txt"),
        (lambda place: (place / "9_7.txt").unlink(), "holds 1 reviews, not 2"),
    ],
)
def test_damaged_imdb_folders_are_named(tmp_path, damage, message):
    write_imdb(tmp_path)
    damage(tmp_path / "train" / "pos")
    with pytest.raises(ValueError, match=message):
        read_imdb(tmp_path, "train", per_class=2)
    read_imdb(tmp_path, "test", per_class=2)


def test_missing_folders_and_checksums(tmp_path):
    with pytest.raises(ValueError, match="neg does not exist"):
        read_imdb(tmp_path, "train")
    (tmp_path / "test" / "neg").mkdir(parents=True)
    with pytest.raises(ValueError, match="holds 0 reviews"):
        read_imdb(tmp_path, "test", per_class=None)
    path = tmp_path / "archive"
    path.write_bytes(b"x" * 3_000_000)
    check_md5(path, hashlib.md5(b"x" * 3_000_000).hexdigest().upper())
    with pytest.raises(ValueError, match="fetch the published file again"):
        check_md5(path, "0" * 32)
    with pytest.raises(ValueError, match="does not exist"):
        check_md5(tmp_path / "nothing", "00")
