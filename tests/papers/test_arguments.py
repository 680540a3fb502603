"""What the faces refuse as mathematically wrong, where a plausible number would come out: NaN before all."""

import numpy as np
import pytest
import torch

from derived.papers import cactus, geometric_tax, sinkhorn, stochastic_approximation, task_ecologies
from derived.papers.cactus.model.sampler import draw

X = torch.arange(40.0).view(20, 2).sin()
HOLED = X.clone()
HOLED[3, 1] = torch.nan
PAIRS = X.repeat(2, 1).unsqueeze(0)
COINS = task_ecologies.FiniteEcology([0.2, 0.3, 0.5], [1.0], [[[0.9, 0.1]], [[0.8, 0.2]], [[0.1, 0.9]]])
REFUSED = {
    "rdm": (lambda: geometric_tax.rdm_similarity(HOLED, X), "= nan"),
    "mine": (lambda: geometric_tax.mine(PAIRS, PAIRS * torch.nan), r"Y\[0, 0, 0\] = nan"),
    "lloyd": (lambda: geometric_tax.LloydMax(X[:2, 0].sort().values).encode(HOLED), r"x\[3, 1\] = nan"),
    "order": (lambda: geometric_tax.LloydMax(torch.tensor([1.0, 0.0])), "not in order"),
    "no labels": (lambda: geometric_tax.fisher_rao_length(0, 0.1), "K = 0; give an integer >= 2"),
    "sharp": (lambda: geometric_tax.fisher_rao_length(8, 1e-300), "sigma = 1e-300; give a finite number >= 1e-150"),
    "draw": (lambda: draw(torch.tensor([[0.5, torch.nan]]), torch.zeros(1)), "NaN"),
    "long draw": (lambda: draw(torch.full((1, 9999), torch.nan), torch.zeros(1)), "NaN"),
    "uniform": (lambda: draw(torch.ones(1, 2), torch.tensor([1.5])), "outside"),
    "rule": (lambda: cactus.acceptance_rate(torch.ones(1), torch.ones(1), "cactus"), "rule = 'cactus'; give a Rule"),
    "worlds": (lambda: task_ecologies.local_threshold(COINS, [0, 1]), "a partition of 2 worlds"),
    "decoder": (lambda: COINS.loss([0, 0, 0], np.array([[[1.5, -0.5]]])), r"decoder\[0, 0, 0\] = 1.5"),
    "shares": (
        lambda: task_ecologies.price_terms([1.0, 2.0], [0.0, 1.0], shares=[1.0]),
        "one share for each",
    ),
    "types": (lambda: task_ecologies.price_terms([], []), "number of types = 0"),
    "languages": (lambda: task_ecologies.language_family([], generator=torch.Generator()), "number of weights = 0"),
    "words": (lambda: geometric_tax.kmer_counts(torch.zeros(1, 40, dtype=torch.uint8), 33), "k = 33; give a number"),
    "field": (lambda: stochastic_approximation.mean_field_root([1.0, np.nan], [1.0, 1.0]), "not finite"),
    "steps": (lambda: sinkhorn.sinkhorn_symmetric(torch.eye(2), max_iterations=-3), "max_iterations = -3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_become_a_plausible_number_is_refused(name):
    call, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        call()


def test_populations_of_a_batch_do_not_mix():
    many = task_ecologies.price_terms([1.0, 3.0], [0.0, 1.0], shares=[[0.5, 0.5], [0.1, 0.9]]).selection
    np.testing.assert_allclose(many, [0.25, 27 / 28 - 0.9], rtol=1e-14)
