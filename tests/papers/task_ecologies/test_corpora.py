"""Loaders of plain-text corpora, on small files."""

from itertools import pairwise

import pytest

from derived.papers.task_ecologies.data.corpora import chunk_text, letter_ids, read_corpus, read_pairs, read_voynich

GUTENBERG = """The Project Gutenberg eBook of X
*** START OF THE PROJECT GUTENBERG EBOOK X ***
Où est l'été?  STRASSE: Straße, æon -- 12 fœtus.
*** END OF THE PROJECT GUTENBERG EBOOK X ***
licence"""


def written(folder, name: str, text: str, encoding: str = "utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def test_a_book_is_its_letters_without_frame_accents_and_marks(tmp_path):
    for encoding in ("utf-8", "utf-8-sig"):
        path = written(tmp_path, "alice_fr.txt", GUTENBERG, encoding)
        assert read_corpus(path) == "ou est l ete strasse strasse aeon foetus"


def test_a_book_without_marks_is_read_whole(tmp_path):
    assert read_corpus(written(tmp_path, "a.txt", "One,\n two")) == "one two"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_another_encoding_is_named(tmp_path, encoding):
    path = written(tmp_path, "bad.txt", "Über allen Gipfeln", encoding)
    with pytest.raises(ValueError, match=r"bad.txt is not UTF-8 \(byte 0 is 0x(dc|ff)\); convert it first"):
        read_corpus(path)


def test_a_file_without_letters_is_named(tmp_path):
    with pytest.raises(ValueError, match="holds no letter"):
        read_corpus(written(tmp_path, "empty.txt", "12 34"))


def test_lines_of_the_transcription_keep_their_letters(tmp_path):
    lines = (
        "#=IVTFF Eva- 1.7\n<f1r>  <! page>\n<f1r.1,@P0>  <%>fachys.ykal.ar<->ataiin\n<f1r.2,+P0> sory{&o}.[cth:oto]y\n"
    )
    assert read_voynich(written(tmp_path, "voynich.txt", lines)) == "fachys ykal ar ataiin sory cthy"
    with pytest.raises(ValueError, match="give a transcription in IVTFF"):
        read_voynich(written(tmp_path, "none.txt", "no lines"))


def test_chunks_of_two_files_are_paired_by_line(tmp_path):
    one, two = written(tmp_path, "b.txt", "(a)\n(b c)\n"), written(tmp_path, "u.txt", ")a(\n)b c(\n")
    assert read_pairs(one, two) == [("(a)", ")a("), ("(b c)", ")b c(")]
    with pytest.raises(ValueError, match=r"has 2 chunks and .* 1"):
        read_pairs(one, written(tmp_path, "short.txt", "(a)\n"))


def test_pieces_are_cut_at_spaces_and_overlap():
    text = "alpha beta gamma delta epsilon zeta eta theta iota kappa"
    pieces = chunk_text(text, 18, 6, spaces=True)
    assert all(len(piece) <= 18 for piece in pieces)
    assert all(piece in text for piece in pieces)
    assert all(set(piece.split()) <= set(text.split()) for piece in pieces)  # whole words
    assert pieces[0].startswith("alpha")
    assert pieces[-1].endswith("kappa")
    covered = set(" ".join(pieces).split())
    assert covered == set(text.split())
    shared = sum(bool(set(a.split()) & set(b.split())) for a, b in pairwise(pieces))
    assert shared >= 2  # neighbours overlap where a word fits
    assert chunk_text(text, 18, 6) == [piece.replace(" ", "") for piece in pieces]


def test_no_text_is_lost_and_none_repeats_for_ever():
    assert chunk_text("", 5, 1) == []
    assert "".join(chunk_text("abcdefghijkl", 5, 2)) == "abcdefghijkl"  # one word longer than a piece is cut
    assert chunk_text("aa bb", 30, 5) == ["aabb"]
    with pytest.raises(ValueError, match="give an overlap below the length"):
        chunk_text("a b", 5, 5)
    with pytest.raises(ValueError, match="length = 0"):
        chunk_text("a b", 0, 0)


def test_letters_become_tokens_after_the_opening_one():
    assert letter_ids(["abz", "zzza"], 3).tolist() == [[26, 0, 1, 25], [26, 25, 25, 25]]
    with pytest.raises(ValueError, match="no chunk of at least 4"):
        letter_ids(["abc"], 4)
