"""What the author's notebooks define, on our inputs: helper of ``geometric_tax.py``, which times some of it.

Where $AUTHORS/geometric-alignment-tax is a clone of github.com/prashantcraju/geometric-alignment-tax (commit 1fe6dbd),
its functions and classes are taken as they stand, on the CPU and without the packages that need a GPU. Where they must
agree with ours, and where they must not, stands in ``check_notebooks`` and ``check_training``: a line each, and
SystemExit where one is not as the page says.
"""

import ast
import contextlib
import json
import re
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from types import SimpleNamespace
from unittest import mock

import harness
import numpy as np
import torch

from derived.lab import training
from derived.lab.rng import stream
from derived.papers.geometric_tax.data.systems import lorenz as lorenz_paths
from derived.papers.geometric_tax.model import heads
from derived.papers.geometric_tax.model.codebooks import UniformQuantizer
from derived.papers.geometric_tax.model.integrators import lorenz, rk4

TAX = "Section 2/Learned Quantization/Learned_Quantization_Bottleneck_Proof_v3.ipynb"
WALK = "Section 2/Track A+B/Track_B_Analysis.ipynb"
INFORMATION = "Section 4/mine/MINE_01_ProtMamba.ipynb"


@cache
def notebook(path: str) -> SimpleNamespace | None:
    """What a notebook of the author's defines, where there is one: imports, constants, functions and classes of its
    code cells, and no run of them. The package that needs a GPU counts as missing, as the notebook foresees."""
    folder = harness.authors_code("geometric-alignment-tax")
    if not folder:
        return None
    names = {"MAMBA_AVAILABLE": False}
    for cell in json.loads((folder / path).read_text())["cells"]:
        if cell["cell_type"] == "code":
            code = re.sub(r"(?m)^(\s*)[!%].*$", r"\1pass", "".join(cell["source"]))
            tree = ast.parse(code)
            for node in filter(_defines, tree.body):
                with contextlib.suppress(ModuleNotFoundError):  # a model's own package, of which nothing is used
                    exec(compile(ast.Module([node], []), path, "exec"), names)
    return SimpleNamespace(**names)


def _defines(node: ast.stmt) -> bool:
    """Whether a statement only names something: an import, a definition, a constant, the choice of a package."""
    if isinstance(node, ast.Assign):
        return all(
            isinstance(each, ast.Name) and each.id.isupper() and each.id != "MAMBA_AVAILABLE" for each in node.targets
        )
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "MAMBA_AVAILABLE"
    return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)


def number(value: float) -> torch.Tensor:
    return torch.tensor([float(value)], dtype=torch.float64)


def author_distortion(both: tuple) -> torch.Tensor:
    """the author's Procrustes distance"""
    return number(notebook(TAX).compute_procrustes_distortion(*(each.numpy() for each in both))[0])


def author_steps(both: tuple) -> torch.Tensor:
    """the author's cosine steps"""
    return torch.from_numpy(notebook(WALK).compute_cosine_lipschitz(both[1].numpy()))


@torch.no_grad()
def ahead(model: torch.nn.Module, codes: int, length: int) -> float:
    """The largest change of an earlier hidden state when a later token changes, over that of the token's own state; in
    float64, where rounding makes 1e-15 of it and a leak far more."""
    tokens = torch.randint(codes, (1, length), generator=stream(0, "ahead"))
    other, place = tokens.clone(), length // 2
    other[0, place] = (other[0, place] + 1) % codes
    states, moved = (model.double().eval()(each, return_hidden=True)[1] for each in (tokens, other))
    change = (states - moved).abs().amax(dim=-1)[0]
    return float(change[:place].max() / change[place])


def check_notebooks(right: float) -> None:
    """The author's definitions on our inputs; ``right`` is how near a path must be to be called right."""
    theirs, length = notebook(TAX), 16
    values = lorenz_paths(50, 64, time=3.2, generator=stream(0, "author paths"))[..., 0]
    low, high = float(values.min()), float(values.max())
    bins = {rule: UniformQuantizer(256, low, high, rule=rule).encode(values) for rule in ("left", "middle")}
    tokens = torch.from_numpy(theirs.discretize(values.numpy(), 256, low, high))
    say("tokens equal to our left-edge bins", bool((tokens == bins["left"]).all()), True)
    say("tokens equal to bins of equal width", bool((tokens == bins["middle"]).all()), False)
    starts = torch.from_numpy(theirs.np.random.default_rng(0).uniform([-15, -15, 10], [15, 15, 40], (8, 3))).T
    first = 20 * 25 / 511  # their points of about one unit of time
    there = rk4(lorenz, starts.contiguous(), dt=25 / 511 / 64, steps=20 * 64, every=64)[:, 0].T
    missed = float((torch.from_numpy(theirs.generate_lorenz(8, seed=0)[2])[:, :21] - there).abs().max())
    say(f"x of their paths is right to {right:g} until {first:.2f}", missed < right, False, f"{missed:.2g} of 40")
    shape = {"vocab_size": 10, "d_model": 16, "num_layers": 2, "max_seq_len": length}
    torch.manual_seed(0)
    say("SmallBERT is causal", ahead(theirs.SmallBERT(**shape, nhead=2), 10, length) < 1e-12, True)
    striped = theirs.SmallStripedHyena(vocab_size=10, d_model=16, n_layers=2, n_heads=2, seq_len=length)
    say("SmallStripedHyena is causal", ahead(striped, 10, length) < 1e-12, False)
    try:
        runs = ahead(theirs.SmallMamba(**shape), 10, length) >= 0
    except AttributeError as missing:
        runs, why = False, str(missing)
    say("SmallMamba runs without its package for the GPU", runs, False, "" if runs else why)
    generator = stream(0, "author mine")
    x, y = (torch.randn(400, d, generator=generator) for d in (25, 50))
    _, found = notebook(INFORMATION).run_mine(
        x.numpy(), y.numpy(), 500, 64, 1e-4, [256, 128], seed=0, device="cpu", verbose=False
    )
    say("in-sample information of independent data is positive", float(found) > 0.1, True, f"{found:.2f} nats")
    check_training(theirs)


def check_training(theirs: SimpleNamespace) -> None:
    """The author's two training loops on our Lorenz paths, with a small network of theirs for a few hundred steps: the
    losses that they follow and the gradients of a batch are ours, they learn, and the ratio of D by their own noise and
    distance is said."""
    values = lorenz_paths(2200, 33, time=1.6, burn_in=2.0, generator=stream(0, "author training"))[..., 0].numpy()
    low, high = float(values.min()), float(values.max())
    tokens, shares = theirs.discretize(values, 256, low, high), theirs.normalize_to_01(values, low, high)
    train, held, batch = slice(0, 1984), slice(1984, 2176), slice(0, 64)  # whole batches of 64
    runs = {
        "CE": (theirs.SmallBERT, theirs.train_model_ce, (tokens,)),
        "MSE": (theirs.SmallBERT_Continuous, theirs.train_model_mse, (tokens, shares)),
    }
    D = {}
    for name, (kind, train_model, sets) in runs.items():
        train_on, judge_on, one = ([each[part] for each in sets] for part in (train, held, batch))
        model, followed, _ = followed_by(train_model, small(kind), train_on, judge_on, epochs=10)
        with torch.no_grad():
            ours = float(our_loss(model.eval(), *judge_on))
        gap = abs(ours - min(followed)) / ours
        say(f"their loss of the {name} head is ours", gap < 1e-5, True, f"{ours:.3g}")
        say(f"the {name} head learns", min(followed) < 0.8 * followed[0], True)
        _, _, steps = followed_by(train_model, small(kind, dropout=0.0), one, one, epochs=1)
        gap = apart(steps[0], small(kind, dropout=0.0), one)
        say(f"their gradients of the {name} head are ours", gap < 1e-5, True, f"to {gap:.1g}")
        noisy = theirs.UniformPerturbationSuite(seed=0).run_all(tokens[held]).values()
        clean, *others = (
            theirs.extract_embeddings(model, each) for each in (tokens[held], *(n.sequences for n in noisy))
        )
        D[name] = sum(theirs.compute_procrustes_distortion(clean, each)[0] for each in others) / len(others)
    print(f"the author's notebooks: D of CE over D of MSE after 310 steps of a small network: {D['CE'] / D['MSE']:.2f}")


def small(kind: type[torch.nn.Module], **options: float) -> torch.nn.Module:
    """A small network of theirs, always with the same first weights."""
    torch.manual_seed(0)
    return kind(d_model=32, nhead=2, num_layers=2, dim_feedforward=128, max_seq_len=33, **options)


def followed_by(train_model: Callable, model: torch.nn.Module, train: list, held: list, epochs: int) -> tuple:
    """What a training loop of theirs leaves: the network, its losses on ``held``, and the gradients of each step, as
    they are when the loop comes to clip their norm."""
    steps, clip = [], torch.nn.utils.clip_grad_norm_

    def seen(weights: Iterable, *args, **options) -> torch.Tensor:
        weights = list(weights)
        steps.append([weight.grad.clone() for weight in weights])
        return clip(weights, *args, **options)

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(None):
        train_model.__globals__["CKPT_DIR"] = folder
        with mock.patch("torch.nn.utils.clip_grad_norm_", seen):
            model, _, losses = train_model(model, *train, *held, "small", epochs=epochs, lr=3e-3)
    return model, losses, steps


def our_loss(model: torch.nn.Module, tokens: np.ndarray, shares: np.ndarray | None = None) -> torch.Tensor:
    """Our loss of a network of theirs on paths (n, L): of the next value where there are values, else of the next
    token."""
    read = torch.from_numpy(tokens)
    says = model(read[:, :-1])[None]
    if shares is None:
        return training.mean_cross_entropy(says, read[None, :, 1:]).sum()
    return heads.squared_loss(says[..., None], torch.from_numpy(shares)[None, :, 1:, None]).sum()


def apart(theirs: list[torch.Tensor], model: torch.nn.Module, batch: list) -> float:
    """How far their gradients lie from those of our loss, over the norm of ours."""
    ours = torch.autograd.grad(our_loss(model.train(), *batch), [*model.parameters()])
    gap = sum(float((one - other).square().sum()) for one, other in zip(theirs, ours, strict=True))
    return (gap / sum(float(each.square().sum()) for each in ours)) ** 0.5


def say(what: str, found: bool, expected: bool, value: str = "") -> None:
    """One line of a comparison with the author's notebooks."""
    harness.require(found == expected, f"the author's notebooks: {what} is {found}, and the page says {expected}")
    print(f"the author's notebooks: {what}: {'yes' if found else 'no'} {value}".rstrip())
