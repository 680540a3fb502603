"""A wrong form fails: each experiment is handed one once, and its claim must say so; and replicates differ."""

import dataclasses

import pytest
import torch

from derived.lab.experiment import run_experiment
from derived.papers.geometric_tax import codebooks, procrustes, sequences
from derived.papers.geometric_tax.claims import CLAIMS
from derived.papers.geometric_tax.model.codebooks import Codebook
from derived.papers.geometric_tax.model.mutations import DISTORTIONS

FORM = Codebook.distortion


def white(num, length, *, generator, **_):
    """Paths without a memory, in the place of Lorenz paths."""
    return torch.rand(num, length, 3, generator=generator, dtype=torch.float64)


WRONG = {
    "GT-2.b": (procrustes, "procrustes_distortion", DISTORTIONS["mean in place of sum"]),
    "GT-2.c": (procrustes, "codes", lambda kind, *rest, form=procrustes.codes: form("linear", *rest)),
    "GT-5.b": (Codebook, "distortion", lambda book, x: FORM(book, x).sqrt()),
    "GT-5.d": (codebooks, "lorenz", white),
    "GT-10.c": (sequences, "PUBLISHED", dict.fromkeys(sequences.PUBLISHED, 32 * 128)),
    "GT-12.b": (sequences.dna, "reverse_complement", lambda s: s),
}


def tiny(id):
    (claim,) = (claim for claim in CLAIMS if claim.id == id)
    return claim, dataclasses.replace(claim.experiment.at("tiny"), replicates=6)


@pytest.mark.parametrize("id", WRONG)
def test_a_wrong_form_fails(monkeypatch, id):
    claim, experiment = tiny(id)
    monkeypatch.setattr(*WRONG[id])
    assert claim.judge(claim.measure(run_experiment(experiment, seed=0, device="cpu")))[0] == "fails"


@pytest.mark.parametrize(
    ("id", "column"),
    [
        ("GT-2.b", "D"),
        ("GT-5.b", "distortion"),
        ("GT-5.d", "share"),
        ("GT-10.c", "cosine"),
        ("GT-12.b", "similarity"),
        ("GT-14.c", "held_out"),
    ],
)
def test_replicates_differ(id, column):
    """Each is a draw of its own: no two have the same rows."""
    table = run_experiment(tiny(id)[1], seed=0, device="cpu")
    if id == "GT-12.b":
        table = table[table["readout"] == "random"]
    rows = table.groupby("replicate")[column].agg(tuple)
    assert rows.nunique() == 6
