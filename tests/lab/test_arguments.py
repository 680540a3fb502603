"""Arguments are checked by their annotations at a paper's face, and nowhere else."""

import copy
import inspect
import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy as np
import pytest
import torch
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from torch import Tensor, nn

from derived.lab.arguments import checked
from derived.papers import hierarchical_kernel, sinkhorn, stochastic_approximation, task_ecologies
from derived.papers.sinkhorn.model.plan import half_steps


def fit(
    X: Float[Tensor, "*batch n d"],
    Y: Float[Tensor, "*#batch n q"] | None = None,
    labels: Int[Tensor, " n"] | Int[np.ndarray, " n"] | None = None,
    *,
    num: int = 1,
    rate: float = 1.0,
    rule: Literal["first", "last"] = "first",
    h: Callable[[Tensor], Tensor] | Iterable[Callable] | None = None,
    table: ArrayLike | None = None,
    generator: torch.Generator | None = None,
    **options,
) -> str:
    """What a docstring says."""
    return "fits"


X, Y = torch.ones(5, 4, 2), torch.ones(4, 1)
SENTENCES = [
    (([1.0],), {}, "X is a list; give a floating torch.Tensor of shape (*batch, n, d)"),
    ((X.numpy(),), {}, "X is a NumPy array; give a floating torch.Tensor of shape (*batch, n, d)"),
    ((None,), {}, "X is None; give a floating torch.Tensor of shape (*batch, n, d)"),
    ((X.long(),), {}, "X has the dtype torch.int64; give a floating torch.Tensor of shape (*batch, n, d)"),
    ((X[0, 0],), {}, "X has the shape (2,); give a floating torch.Tensor of shape (*batch, n, d)"),
    ((X[:0],), {}, "X has the shape (0, 4, 2); give at least one entry"),
    ((X, Y[:3]), {}, "Y has the shape (3, 1) beside X (5, 4, 2); give a floating torch.Tensor of shape (*batch, n, q)"),
    ((X, Y.expand(3, 4, 1)), {}, "Y has the shape (3, 4, 1) beside X (5, 4, 2); give a floating torch.Tensor"),
    (
        (X, Y, torch.arange(3)),
        {},
        "labels has the shape (3,) beside X (5, 4, 2), Y (4, 1); give an integer",
    ),
    ((X, Y, "abcd"), {}, "labels is a string; give an integer torch.Tensor of shape (n,) or an integer NumPy array"),
    ((X,), {"num": 1.5}, "num = 1.5; give an integer"),
    ((X,), {"rate": "fast"}, "rate = 'fast'; give a number"),
    ((X,), {"rate": X}, "rate is a torch.Tensor; give a number"),
    ((X,), {"rule": "middle"}, "rule = 'middle'; give 'first' or 'last'"),
    ((X,), {"h": 3}, "h = 3; give a function or an iterable of functions"),
    ((X,), {"table": "abc"}, "table = 'abc'; give a number, a list, a tuple, a NumPy array or a torch.Tensor"),
    ((X,), {"generator": 0}, "generator = 0; give a torch.Generator, such as lab.rng.stream(0, 'noise')"),
]


@pytest.mark.parametrize(("args", "options", "sentence"), SENTENCES)
def test_a_wrong_argument_is_told_in_one_sentence(args, options, sentence):
    with pytest.raises(ValueError, match=r"^fit: ") as told:
        checked(fit)(*args, **options)
    assert str(told.value).startswith(f"fit: {sentence}")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "options",
    [
        {"num": np.int64(2), "rate": 1},
        {"rate": np.float32(2), "table": [[1, 2]]},
        {"Y": Y.half(), "labels": torch.arange(4)},
        {"labels": np.arange(4), "h": torch.exp, "other": object()},
    ],
)
def test_what_python_takes_for_a_number_is_taken(options):
    assert checked(fit)(X, **options) == "fits"


def test_every_entry_of_a_sequence_counts():
    for place in range(20):
        entries = [0.5 if place == each else each for each in range(20)]
        with pytest.raises(ValueError, match=r"record: times = .*; give a sequence of integers"):
            checked(record)(entries)
    assert checked(record)(range(3)) == checked(record)(None) == 1


def record(times: Sequence[int] | None) -> int:
    return 1


def test_a_missing_argument_is_told_as_python_does():
    with pytest.raises(TypeError, match=r"fit\(\) missing 1 required positional argument: 'X'"):
        checked(fit)()


def test_signature_and_words_stay():
    assert inspect.signature(checked(fit)) == inspect.signature(fit)
    assert checked(fit).__doc__ == fit.__doc__


def test_a_room_is_not_checked_and_its_face_is():
    assert half_steps(torch.zeros(1, 2), 1, None, mask=None).shape == (1, 2)
    assert not hasattr(half_steps, "checks_arguments")
    with pytest.raises(ValueError, match=r"half_steps: num = 1.0; give an integer"):
        sinkhorn.half_steps(torch.zeros(1, 2), 1.0)


def test_methods_of_a_class_itself_are_checked_as_well():
    assert task_ecologies.FiniteEcology.from_counts([[[3, 1]]]).num_worlds == 1
    with pytest.raises(ValueError, match=r"^FiniteEcology.from_counts: counts = 'many'; give a number, a list"):
        task_ecologies.FiniteEcology.from_counts("many")


def test_a_class_stays_one_class():
    from derived.papers.hierarchical_kernel.model.layers import HKTAttention
    from derived.papers.stochastic_approximation.data import Mixture

    assert hierarchical_kernel.HKTAttention is HKTAttention
    assert stochastic_approximation.Mixture is Mixture
    layer, x = HKTAttention(8, heads=2), torch.ones(1, 6, 8)
    for twin in (
        copy.deepcopy(layer),
        pickle.loads(pickle.dumps(layer)),
        torch.compile(layer, fullgraph=True, backend="eager"),
    ):
        torch.testing.assert_close(twin(x), layer(x))
    assert isinstance(layer, nn.Module)
    for call, sentence in (
        (lambda: HKTAttention("8"), "HKTAttention: d = '8'; give an integer"),
        (lambda: layer(None), r"HKTAttention.forward: x is None; give a floating torch.Tensor of shape \(R, \*batch"),
        (lambda: Mixture((1.0,), (1.0,), (1.0,)).draw(2, 3, None), "Mixture.draw: generator is None; give a torch.Gen"),
    ):
        with pytest.raises(ValueError, match=f"^{sentence}"):
            call()
