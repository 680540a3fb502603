"""The texts come out whole: known sizes, known words."""

import pytest
from here import needs

from derived.lab.real import texts


@needs("austen")
def test_six_novels_with_their_first_and_last_words():
    novels = texts.austen()
    assert sorted(novels) == [
        *("Emma", "Mansfield Park", "Northanger Abbey", "Persuasion", "Pride and Prejudice", "Sense and Sensibility"),
    ]
    assert 4.0e6 < sum(map(len, novels.values())) < 4.1e6
    assert "It is a truth universally acknowledged" in novels["Pride and Prejudice"]
    assert novels["Emma"].rstrip().endswith("FINIS")
    assert "Sir Walter Elliot, of Kellynch Hall" in novels["Persuasion"]


@needs("stdlib")
def test_speeches_by_year():
    speeches = texts.speeches()
    assert len(speeches) == 233
    assert [speeches[0].year, speeches[-1].year] == [1790, 2021]
    assert [speech.year for speech in speeches] == sorted(speech.year for speech in speeches)
    assert sum(len(speech.text) for speech in speeches) > 10_700_000


@needs("anarci")
@pytest.mark.parametrize(("chain", "count"), [("H", 49), ("K", 41), ("L", 31)])
def test_genes_of_a_chain_are_first_alleles_in_amino_acids(chain, count):
    genes = texts.antibody_genes(chain)
    assert len(genes) == count
    assert all(name.startswith(f"IG{chain}V") and {*gene} <= {*"ACDEFGHIKLMNPQRSTVWY"} for name, gene in genes.items())
    assert chain != "H" or "WVRQ" in genes["IGHV3-23*01"]  # the turn of the second framework
