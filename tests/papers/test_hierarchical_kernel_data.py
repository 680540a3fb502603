"""Generated pictures and reviews, and the readers of real files, on small files made in the same formats."""

import hashlib
import itertools
import math
import re

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel import files, sequences, shallow, trained, training
from derived.papers.hierarchical_kernel.files import check_md5, read_cifar10, read_imdb, read_listops_tsv
from derived.papers.hierarchical_kernel.listops import ListOps, to_text
from derived.papers.hierarchical_kernel.sequences import (
    FILLERS,
    NUM_WORDS,
    Sequences,
    polar_words,
    shapes_sequence,
    synthetic_reviews,
)

# --- pictures ---------------------------------------------------------------------------------------------------------


def test_pictures_are_what_they_are_called():
    drawn = shapes_sequence(600, generator=stream(0, "pictures"))
    assert drawn.tokens.shape == (600, 1024)
    assert drawn.tokens.dtype == torch.int64
    assert 0 <= int(drawn.tokens.min()) < 40
    assert 215 < int(drawn.tokens.max()) <= 255
    assert set(drawn.lengths.tolist()) == {1024}
    counts = torch.bincount(drawn.labels, minlength=10)
    assert bool(((counts - 60).abs() < 4.5 * math.sqrt(60)).all())


@pytest.mark.parametrize("size", [8, 32])
def test_shapes_have_their_areas(size):
    """Areas in units of the half-width squared: pi, 1.8^2, the triangle's, the cross's, the ring's."""
    axis = (torch.arange(400, dtype=torch.float64) + 0.5) / 100 - 2
    u, v = axis.expand(400, 400), axis.unsqueeze(-1).expand(400, 400)
    areas = [float(each.sum()) / 1e4 for each in sequences.inside_shapes(u, v)]
    exact = [math.pi, 1.8**2, 1.8 * 2 * 1.8 / math.sqrt(3) / 2, 2 * 2 * 0.6 - 0.6**2, math.pi * (1 - 0.55**2)]
    np.testing.assert_allclose(areas, exact, rtol=0.02)
    assert shapes_sequence(3, size, generator=stream(0, "size")).tokens.shape == (3, size**2)


def test_shapes_differ_from_their_background_and_stripes_from_smooth():
    """Same draws, other class: stripes change about half of a shape's pixels, and pixels outside never."""
    smooth, striped = (sequences.draw_shapes(torch.full((50,), label), 32, stream(0, "same")) for label in (0, 5))
    changed = (smooth - striped).abs() > 0.1
    disc = 2 * math.pi * 5.5**2 / 2
    assert 0.3 * disc < float(changed.sum(dim=(1, 2)).double().mean()) < 0.7 * disc
    other = sequences.draw_shapes(torch.full((50,), 4), 32, stream(0, "same"))
    inner = ((smooth - other).abs() > 0.1).sum(dim=(1, 2)).double().mean()
    assert float(inner) == pytest.approx(0.55**2 * math.pi * 5.5**2, rel=0.3)


# --- reviews ----------------------------------------------------------------------------------------------------------


def read(review: torch.Tensor, length: int) -> str:
    return bytes(review[:length].tolist()).decode()


def score(text: str) -> list[tuple[int, int]]:
    """(end, score) of each sentence, read from the letters alone: the rules once more, by a regular expression."""
    positive, negative = polar_words()
    found, end = [], 0
    for sentence in re.findall(r"[^.]*\. ", text):
        end += len(sentence)
        total = 0
        for clause in re.finditer(r"(but )?the [a-z]+ is (not )?(very )?([a-z]+)(?=[,.])", sentence):
            but, negated, very, word = clause.groups()
            if word in positive or word in negative:
                sign = 1 if (word in positive) != bool(negated) else -1
                total += sign * (2 if but else 1) * (2 if very else 1)
        found.append((end, total))
    assert end == len(text)
    return found


def test_reviews_follow_their_rules():
    """Each label read back from the text; 30 % of first halves mislead; texts end with a whole sentence in range."""
    num = 3000
    drawn = synthetic_reviews(num, generator=stream(0, "reviews"))
    wrong, balance = 0, 0
    for review, length, label in zip(drawn.tokens, drawn.lengths.tolist(), drawn.labels.tolist(), strict=True):
        text = read(review, length)
        sentences = score(text)
        total = sum(points for _, points in sentences)
        assert (total > 0) == bool(label)
        assert total != 0
        assert 4 <= len(sentences) <= 12
        assert not review[length:].any()
        half = sum(points for end, points in sentences if 2 * end <= length)
        wrong += half * total < 0
        balance += label
    assert abs(wrong / num - 0.3) < 4.5 * math.sqrt(0.21 / num)
    assert abs(balance / num - 0.5) < 4.5 * math.sqrt(0.25 / num)
    assert int(drawn.lengths.max()) <= 1024
    assert float(drawn.lengths.double().mean()) > 400


@pytest.mark.parametrize("misleading", [0.0, 1.0])
def test_share_of_misleading_reviews_is_asked_for(misleading):
    drawn = synthetic_reviews(60, 448, misleading=misleading, generator=stream(0, "misleading"))
    assert drawn.tokens.shape == (60, 448)
    for review, length in zip(drawn.tokens, drawn.lengths.tolist(), strict=True):
        sentences = score(read(review, length))
        total = sum(points for _, points in sentences)
        half = sum(points for end, points in sentences if 2 * end <= length)
        assert (half * total < 0) == bool(misleading)


def test_words_and_sentences():
    positive, negative = polar_words()
    assert len(positive) == len(negative) == NUM_WORDS == 30
    assert len({*positive, *negative}) == 60
    assert all(4 <= len(word) <= 8 for word in positive + negative)
    assert not any(word in filler.split() for word in positive + negative for filler in FILLERS)
    longest = max(
        len(f"{subject} is not very {word}") for subject in sequences.SUBJECTS for word in positive + negative
    )
    assert sequences.LEAST * max(2 * longest + len(", but . "), *map(len, FILLERS)) <= sequences.SHORTEST


def test_sets_travel_and_are_reproducible():
    a, b, c = (synthetic_reviews(8, generator=stream(seed, "r")) for seed in (0, 0, 1))
    assert torch.equal(a.tokens, b.tokens)
    assert not torch.equal(a.tokens, c.tokens)
    assert isinstance(a.to("cpu"), Sequences)
    assert torch.equal(
        shapes_sequence(3, generator=stream(0, "p")).tokens, shapes_sequence(3, generator=stream(0, "p"))[0]
    )


# --- ListOps files ----------------------------------------------------------------------------------------------------


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


# --- CIFAR-10 files ---------------------------------------------------------------------------------------------------


def write_cifar(folder, records: int = 4) -> np.ndarray:
    """Six small files in the binary format; returns the training records."""
    draws = np.random.default_rng(int(torch.randint(2**31, (), generator=stream(0, "cifar"))))
    made = []
    for name in itertools.chain(*files.CIFAR_FILES.values()):
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


# --- IMDB folders -----------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shapes_sequence(0, generator=stream(0, "n")), "num = 0"),
        (lambda: shapes_sequence(1, 7, generator=stream(0, "n")), "size = 7"),
        (lambda: synthetic_reviews(1, 400, generator=stream(0, "n")), "length = 400"),
        (lambda: synthetic_reviews(1, misleading=2.0, generator=stream(0, "n")), "misleading = 2.0"),
        (lambda: sequences.encode_texts([""], 4, torch.zeros(1)), "text 0 is empty"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- the rule that does not read order --------------------------------------------------------------------------------


def bags(num: int, name: str) -> training.Data:
    """Two data sets of three classes over five symbols; class y says y + 1 twice as often as the others. 0 pads."""
    draw = stream(0, "bags", name)
    labels = torch.randint(3, (2, num), generator=draw)
    chances = torch.ones(2, num, 5)
    chances[..., 0] = 0
    chances.scatter_(-1, 1 + labels.unsqueeze(-1), 2.0)
    tokens = torch.multinomial(chances.flatten(0, 1), 40, replacement=True, generator=draw).view(2, num, 40)
    lengths = torch.randint(20, 41, (2, num), generator=draw)
    return training.Data(tokens * (torch.arange(40) < lengths.unsqueeze(-1)), lengths, labels)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_runs_are_counted_as_by_hand(length):
    data = bags(6, "runs")
    found = shallow.gram_counts(data, length, 101)
    for r in range(2):
        for i in range(6):
            said = data.tokens[r, i, : data.lengths[r, i]].tolist()
            runs = [said[j : j + length] for j in range(len(said) - length + 1)]
            codes = [sum(s * 257 ** (length - 1 - m) for m, s in enumerate(run)) % 101 for run in runs]
            assert found[r, i].tolist() == [codes.count(code) for code in range(101)]


def test_the_linear_rule_is_a_ridge_regression_of_each_network():
    train, test = bags(60, "train"), bags(40, "test")
    guess = shallow.linear_rule(train, test, length=1, buckets=5, classes=3)
    for r in range(2):
        seen, asked = (shallow.gram_counts(data, 1, 5)[r].numpy() for data in (train, test))
        wanted = np.eye(3)[train.labels[r].numpy()]
        X = seen - seen.mean(axis=0)
        ridge = np.sqrt(0.01 * (X**2).sum() / 5) * np.eye(5)  # as five more rows of an ordinary least-squares problem
        rows, right = np.vstack([X, ridge]), np.vstack([wanted - wanted.mean(axis=0), np.zeros((5, 3))])
        slopes = np.linalg.lstsq(rows, right, rcond=None)[0]
        scores = (asked - seen.mean(axis=0)) @ slopes + wanted.mean(axis=0)
        assert guess[r].tolist() == scores.argmax(axis=1).tolist()


def test_the_linear_rule_learns_what_symbols_say_and_reads_neither_order_nor_padding():
    train, test = bags(400, "train"), bags(300, "test")
    facts = {"length": 1, "buckets": 5, "classes": 3}
    guess = shallow.linear_rule(train, test, **facts)
    assert float((guess == test.labels).double().mean()) > 0.6
    whole = test._replace(lengths=torch.full_like(test.lengths, 20))
    behind = torch.full_like(whole.tokens[..., 20:], 4)
    turned = whole._replace(tokens=torch.cat([whole.tokens[..., :20].flip(-1), behind], dim=-1))
    assert torch.equal(*(shallow.linear_rule(train, each, **facts) for each in (whole, turned)))


def test_a_class_that_never_occurs_is_never_guessed():
    train = bags(50, "train")
    kept = train._replace(labels=train.labels.clamp_max(1))
    assert int(shallow.linear_rule(kept, bags(60, "test"), length=1, buckets=5, classes=4).max()) <= 1


def test_shallow_rules_beat_chance_on_the_generated_tasks_and_do_not_solve_them():
    for task, low, high in ((trained.Shapes(), 0.12, 0.3), (trained.Reviews(), 0.6, 0.9)):
        train, test = (
            training.stack([task.task(stream(0, name, "bag"), num)]) for name, num in (("a", 4000), ("b", 1000))
        )
        share = float((task.rule(train, test) == test.labels).double().mean())
        assert low < share < high, (type(task).__name__, share)
