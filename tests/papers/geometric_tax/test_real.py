"""Real genes and real DNA: that they are what they are called, and what their measures must say."""

from itertools import pairwise
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from here import needs

from derived.lab.experiment import run_experiment
from derived.lab.real import models
from derived.papers.geometric_tax import real
from derived.papers.geometric_tax.data.real import human_dna, stretches
from derived.papers.geometric_tax.real import AntibodyWalks, HumanStrands


@needs("emboss")
def test_human_dna_has_the_length_and_the_letters_that_its_entry_says():
    entry = human_dna("V00508")
    assert torch.bincount(entry.long(), minlength=5).tolist() == [1203, 703, 937, 1072, 4]


def test_stretches_leave_out_what_is_not_known():
    s = torch.tensor([0, 1, 2, 3, 0, 4, 3, 3, 1, 1, 1, 1], dtype=torch.uint8)
    assert stretches(s, 2, 3).tolist() == [[[0, 1, 2]], [[3, 3, 1]]]


@needs("emboss")
def test_a_strand_that_is_not_turned_is_the_same(monkeypatch):
    """A wrong form: with no reverse complement all arms are alike, and the claim fails."""
    monkeypatch.setattr("derived.papers.geometric_tax.real.dna.reverse_complement", lambda s: s)
    table = run_experiment(HumanStrands.at("tiny"), seed=0, device="cpu")
    assert (table["similarity"] > 1 - 1e-9).all()
    claim = real.CLAIMS[2]
    assert claim.judge(claim.measure(table))[0] == "fails"


@needs("sapiens", "anarci")
def test_walks_change_one_residue_a_step_and_replicates_differ():
    size = AntibodyWalks.at("tiny")
    path = size.walk("EVQL", torch.Generator().manual_seed(0))
    assert [sum(a != b for a, b in zip(*pair, strict=True)) for pair in pairwise(path)] == [1, 1]
    table = run_experiment(size, seed=0, device="cpu")
    assert table.groupby(["encoder", "L"])["cosine"].nunique().eq(size.genes).all()
    assert (table.groupby(["encoder", "L"])["cosine"].mean().unstack().diff(axis=1).iloc[:, 1:] < 0).all(axis=None)


def test_the_cosine_step_of_states_at_right_angles_is_one(monkeypatch):
    """A reader whose state of a residue is a direction of its own: the window of one residue turns by a right angle at
    every step, that of four by less. A gene that is shorter than a window is not read."""

    def read(tokens):
        return SimpleNamespace(last_hidden_state=torch.nn.functional.one_hot(tokens, 128).float())

    def tokens(text):
        return torch.tensor([[0, *map(ord, text), 0]])

    body = SimpleNamespace(base_model=read)
    body.to = lambda device: body
    monkeypatch.setattr(models, "load", lambda name: SimpleNamespace(model=body, tokens=tokens))
    monkeypatch.setattr(real, "antibody_genes", lambda *_: {"short": "EVQ", "long": "EVQLVE", "four": "QLES"})
    size = AntibodyWalks(genes=3, steps=5, windows=(1, 4))
    table = size.run({"encoder": "heavy"}, seed=0, device="cpu", dtype=torch.float32)
    assert {*table["gene"]} == {"long", "four"}
    assert table.query("L == 1")["cosine"].tolist() == pytest.approx([1, 1])
    assert table.query("L == 4")["cosine"].between(0.01, 0.6).all()
    assert table.index.tolist() == [0, 1, 2, 3]


def invented(power):
    """Steps that fall with a power of the window, the same in all encoders."""
    keys = [(name, L, gene) for name in real.WINDOWS for L in (2, 6, 48, 96) for gene in "abc"]
    table = pd.DataFrame(keys, columns=["encoder", "L", "gene"])
    return table.assign(cosine=table["L"] ** -float(power), recorded=True, tier="cpu")


def test_equal_encoders_differ_by_their_windows_alone():
    table = invented(2)
    assert real.differ(table).value == pytest.approx(1)
    assert real.windows_alone(table).value == pytest.approx(48**2)
    assert real.windows_alone(invented(0)).value == pytest.approx(1)
    assert real.windows_alone(invented(2), "near").value == pytest.approx(2**2)
    assert real.dealt(table) == pytest.approx([48**2] * 24)  # equal encoders: it does not matter who reads what
    longer = table["cosine"].where(table["encoder"] != "heavy", 2 * table["cosine"])
    found = {round(factor) for factor in real.dealt(table.assign(cosine=longer))}
    assert found == {48**2 // 2, 48**2, 2 * 48**2}


def test_the_figure_tells_what_it_shows(tells):
    arms = pd.DataFrame({"arm": [*real.ARMS] * 2, "similarity": [0.5, 0.4, 0.2, 0.1] * 2})
    tells(real.real(invented(2), arms.assign(recorded=True, tier="cpu")), "human 0.50", "uniform letters 0.10")
