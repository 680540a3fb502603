"""The scores as a kernel: uniqueness of the two parts, and what a mask hides (HKT-4, 5)."""

import pandas as pd
import torch

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.claims import CLAIMS
from derived.papers.hierarchical_kernel.experiments import kernel
from derived.papers.hierarchical_kernel.experiments.instances import normal
from derived.papers.hierarchical_kernel.experiments.kernel import Splits
from derived.papers.hierarchical_kernel.figures.kernel import eigenvalues, split_energy

CLAIM = {one.id: one for one in CLAIMS}


def test_uniqueness_notices_another_pair_of_parts():
    splits = Splits(T=4)
    S = normal((3, 4, 4), stream(0, "S"))
    S_s, S_a = (S + S.mT) / 2, (S - S.mT) / 2
    assert float(splits._solved(S, S_s, S_a).max()) < 1e-14
    assert torch.allclose(splits._solved(S, S_s + 0.1, S_a), torch.tensor(0.1).double())
    assert torch.allclose(splits._solved(S, S_s, S_a - 0.1), torch.tensor(0.1).double())


def test_two_tables_are_witnesses_only_if_their_attention_is_one():
    table = pd.DataFrame({"check": ["split", "split", "output", "output"], "gap": [0.8, 0.5, 0.0, 0.0]})
    assert CLAIM["HKT-5.c"].measure(table).value == 0.5
    table.loc[3, "gap"] = 1e-17
    assert CLAIM["HKT-5.c"].measure(table).value == -1e-17


def test_without_its_mask_the_layer_hides_nothing(monkeypatch):
    """HKT-5.c is refuted by tables that a mask makes equal; where nothing is masked the witness is worth nothing."""
    claim = CLAIM["HKT-5.c"]
    small = Splits.at("tiny")
    assert claim.judge(claim.measure(run_experiment(small, seed=3, device="cpu")))[0] == "refuted"
    monkeypatch.setattr(kernel, "causal_mask", lambda S: S)
    assert claim.judge(claim.measure(run_experiment(small, seed=3, device="cpu")))[0] == "undecided"


def test_eigenvalues_of_both_signs_are_counted(words_of):
    rows = pd.DataFrame({"d_k": 1, "head": 0, "rank": [0, 1, 2], "value": [-1.0, 2.0, 3.0]})
    assert "2 to 2 positive and 1 to 1 negative at width 1" in words_of(eigenvalues(rows))


def test_the_figure_of_both_parts_says_their_mean_by_level(words_of):
    rows = pd.DataFrame({"level": [0, 0, 1, 1], "symmetric": [1.0, 3.0, 1.0, 1.0], "antisymmetric": 0.5})
    assert "level 0 2.00 and 0.50; level 1 1.00 and 0.50" in words_of(split_energy(rows))
