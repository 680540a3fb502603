"""What a race says of an author's notebooks is checked, and a notebook that does otherwise is refused."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from .test_races import script

author = script("geometric_tax_author")


class Reader(nn.Module):
    """Reads each token alone, as a causal model may; with ``leak`` also the next one."""

    def __init__(self, outputs=256, leak=False, dropout=0.1, **_):
        super().__init__()
        self.leak, self.drop = leak, nn.Dropout(dropout)
        self.embed, self.head = nn.Embedding(256, 16), nn.Linear(16, outputs)

    def forward(self, tokens, return_hidden=False):
        h = self.embed(tokens)
        if self.leak:
            h = h + torch.cat([h[:, 1:], h[:, -1:]], dim=1)
        says = self.head(self.drop(h)).squeeze(-1)
        return (says, h) if return_hidden else says


def loop(loss, target, lr, told=1.0, at=1):
    """A training loop in the author's manner: ``target`` of the sets is predicted, at the next place unless ``at`` says
    otherwise, and ``told`` times the loss on the judged paths is what it reports."""

    def train(model, *sets, epochs, **_):
        (*seen, _), followed = sets, []
        ours, theirs = seen[: len(seen) // 2], seen[len(seen) // 2 :]
        optimiser = torch.optim.Adam(model.parameters(), lr=lr)
        for _ in range(epochs):
            for part in zip(*(torch.from_numpy(each).split(64) for each in ours), strict=True):
                optimiser.zero_grad()
                loss(model.train()(part[0][:, :-1]), part[target][:, at : at + 32]).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()
            with torch.no_grad():
                read = [torch.from_numpy(each) for each in theirs]
                followed.append(told * float(loss(model.eval()(read[0][:, :-1]), read[target][:, 1:])))
        return model, followed, followed

    return train


def of_tokens(says, labels):
    return cross_entropy(says.flatten(0, 1), labels.flatten())


class Disturbances:
    """One token in ten is another."""

    def __init__(self, seed):
        self.g = np.random.default_rng(seed)

    def run_all(self, tokens):
        hit = self.g.random(tokens.shape) < 0.1
        return {"one": SimpleNamespace(sequences=np.where(hit, self.g.integers(256, size=tokens.shape), tokens))}


def theirs(**changes):
    """A notebook that does all that the page says of its training, but for ``changes``."""
    right = {
        "discretize": lambda x, K, low, high: ((x - low) / (high - low) * (K - 1)).astype(int),
        "normalize_to_01": lambda x, low, high: ((x - low) / (high - low)).astype(np.float32),
        "SmallBERT": Reader,
        "SmallBERT_Continuous": lambda **options: Reader(1, **options),
        "train_model_ce": loop(of_tokens, 0, 1e-2),
        "train_model_mse": loop(mse_loss, 1, 1e-2),
        "UniformPerturbationSuite": Disturbances,
        "extract_embeddings": lambda model, tokens: model(torch.from_numpy(tokens), return_hidden=True)[1].mean(dim=1),
        "compute_procrustes_distortion": lambda X, Y: (float((X - Y).norm().detach()), 0.0),
    }
    return SimpleNamespace(**{**right, **changes})


def test_loops_that_do_what_the_page_says_pass(capsys):
    author.check_training(theirs())
    said = capsys.readouterr().out
    for head in ("CE", "MSE"):
        for what in (f"their loss of the {head} head is ours", f"their gradients of the {head} head are ours"):
            assert f"{what}: yes" in said
    assert "D of CE over D of MSE" in said


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"train_model_ce": loop(of_tokens, 0, 1e-2, told=1.001)}, "loss of the CE head"),
        ({"train_model_mse": loop(mse_loss, 1, 1e-2, told=1.001)}, "loss of the MSE head"),
        ({"train_model_ce": loop(of_tokens, 0, 0.0)}, "the CE head learns"),
        ({"train_model_mse": loop(mse_loss, 1, 0.0)}, "the MSE head learns"),
        ({"train_model_ce": loop(of_tokens, 0, 1e-2, at=0)}, "the CE head"),
        ({"train_model_mse": loop(mse_loss, 1, 1e-2, at=0)}, "gradients of the MSE head"),
        (
            {"train_model_ce": loop(lambda says, y: 1.001 * of_tokens(says, y), 0, 1e-2, told=1 / 1.001)},
            "gradients of the CE",
        ),
    ],
)
def test_a_loop_that_does_otherwise_is_refused(changed, named):
    """Losses told a thousandth too large, nothing learned, the token or value that is read as the target, another loss
    than the one that is told."""
    with pytest.raises(SystemExit, match=named):
        author.check_training(theirs(**changed))


def test_a_model_that_peeks_is_seen():
    torch.manual_seed(0)
    assert author.ahead(Reader(), 10, 16) < 1e-12
    assert author.ahead(Reader(leak=True), 10, 16) > 1e-3


def test_only_what_a_notebook_defines_is_taken(tmp_path, monkeypatch):
    """Nothing runs: neither calls, nor lines for a shell, nor what a GPU would be asked for."""
    lines = ["!pip install nothing\n", "import math\n", "import no_such_package\n", "RATE = 3\n", "found = 1 / 0\n"]
    lines += ["MAMBA_AVAILABLE = 1 / 0\n", "if MAMBA_AVAILABLE:\n    CHOICE = 'a'\nelse:\n    CHOICE = 'b'\n"]
    lines += ["def twice(x):\n    return 2 * x\n", "print(1 / 0)\n"]
    cells = [{"cell_type": "markdown", "source": ["not code"]}, {"cell_type": "code", "source": lines}]
    (tmp_path / "geometric-alignment-tax").mkdir()
    (tmp_path / "geometric-alignment-tax" / "small.ipynb").write_text(json.dumps({"cells": cells}))
    monkeypatch.setenv("AUTHORS", str(tmp_path))
    author.notebook.cache_clear()
    found = author.notebook("small.ipynb")
    author.notebook.cache_clear()
    assert (found.RATE, found.CHOICE, found.twice(4)) == (3, "b", 8)
    assert not hasattr(found, "found")


def test_what_the_page_does_not_say_stops_the_script():
    with pytest.raises(SystemExit, match="tokens are equal is True, and the page says False"):
        author.say("tokens are equal", True, False)
