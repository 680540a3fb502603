"""Each public function on input that breaks code of its kind: it answers rightly, or says in one line why it does not.

The calls stand in ``sweep.py``. The witness is the same function in float64 on plain input, and differences.
"""

import codecs
import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.task_ecologies import read_corpus

from .sweep import EXAMPLES, WITHOUT_TENSORS, Example

PAPERS = Path(__file__).resolve().parents[2] / "src/derived/papers"
STEP, OF_DIFFERENCES = 1e-5, 1e-6
FAR = 1e4


def answers(example: Example, **changed: Tensor) -> tuple[Tensor, ...]:
    """What the example gives, as a tuple of tensors."""
    answer = example.call(**{**example.tensors, **changed})
    return answer if isinstance(answer, tuple) else (answer,)


def agree(found: tuple[Tensor, ...], right: tuple[Tensor, ...], tolerance: float = 1e-9) -> None:
    for one, other in zip(found, right, strict=True):
        assert one.shape == other.shape
        one, other = one.detach().double(), other.detach().double()
        assert bool(((one - other).abs() <= tolerance * (1 + other.abs().amax())).all()), (one - other).abs().max()


def one_line(error: Exception, *words: str) -> None:
    """Whether an error is ours, or names what cannot be done."""
    said = str(error)
    assert len(said.splitlines()) == 1, said
    assert isinstance(error, ValueError | TypeError) or any(word in said for word in words), f"{error!r}"


def refused(example: Example, *words: str, **changed: Tensor) -> tuple[Tensor, ...] | None:
    """The answer, or None where a clear error stands in its place."""
    try:
        return answers(example, **changed)
    except Exception as error:
        one_line(error, *words)
        return None


def each(example: Example, change: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
    return {name: change(tensor) for name, tensor in example.tensors.items()}


def non_contiguous(example: Example) -> None:
    right = answers(example)
    agree(answers(example, **each(example, lambda x: torch.stack([x, x + 1], dim=-1)[..., 0])), right)
    agree(answers(example, **each(example, lambda x: x.mT.contiguous().mT if x.ndim > 1 else x)), right)


def batch(example: Example) -> None:
    """A batch of one, an expanded one of three, and one of none."""
    if not example.batched:
        return
    right = answers(example)
    agree(answers(example, **each(example, lambda x: x[None])), tuple(one[None] for one in right))
    three = each(example, lambda x: x.expand(3, *x.shape))
    agree(answers(example, **three), tuple(one.expand(3, *one.shape) for one in right))
    none = refused(example, **each(example, lambda x: x.new_empty(0, *x.shape)))
    assert none is None or [one.shape for one in none] == [(0, *one.shape) for one in right]


def through(example: Example, logits: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors; those that are laws from numbers of any size."""
    return {name: x.softmax(dim=-1) if name in example.laws else x for name, x in logits.items()}


def slopes(example: Example, logits: dict[str, Tensor], weigh: list[Tensor]) -> Iterator[tuple[str, Tensor, float]]:
    """Name, gradient times a direction, and the same by differences."""
    leaves = {name: x.clone().requires_grad_() for name, x in logits.items()}
    found = answers(example, **through(example, leaves))
    total = sum((w * one).sum() for w, one in zip(weigh, found, strict=True))
    gradients = torch.autograd.grad(total, tuple(leaves.values()), allow_unused=True)
    for (name, x), gradient in zip(logits.items(), gradients, strict=True):
        way = torch.randn(x.shape, generator=stream(1, "way", name), dtype=x.dtype)
        ends = []
        for sign in (1, -1):
            moved = through(example, {**logits, name: x + sign * STEP * way})
            ends.append(
                sum(float((w * one).detach().sum()) for w, one in zip(weigh, answers(example, **moved), strict=True))
            )
        found = torch.zeros_like(x) if gradient is None else gradient
        assert found.isfinite().all(), f"the gradient in {name} is not finite"
        yield name, (found * way).sum(), (ends[0] - ends[1]) / (2 * STEP)


def logits_of(example: Example) -> dict[str, Tensor]:
    return {name: x.log() if name in example.laws else x for name, x in example.tensors.items()}


def weighing(example: Example) -> list[Tensor]:
    right = enumerate(answers(example))
    return [torch.randn(one.shape, generator=stream(1, "weigh", k), dtype=torch.float64) for k, one in right]


def gradients(example: Example) -> None:
    """They agree with differences; what has none says so in one line, or gives numbers that ask for none."""
    tensors = example.tensors
    graded = {name: tensors[name] for name in (tensors if example.graded is None else example.graded)}
    rest = {name: x.clone().requires_grad_() for name, x in tensors.items() if name not in graded}
    recorded = [one.sum() for one in refused(example, **rest) or () if one.requires_grad and rest]
    try:
        sum(recorded, torch.zeros((), requires_grad=True)).backward()
        assert not recorded, "a gradient in what has none"
    except RuntimeError as error:
        one_line(error, "cannot be differentiated")
    if graded:
        fixed = {name: x.detach() for name, x in rest.items()}
        given = replace(example, tensors=graded, call=partial(example.call, **fixed))
        for name, slope, difference in slopes(given, logits_of(given), weighing(given)):
            assert abs(float(slope) - difference) <= OF_DIFFERENCES * (1 + abs(difference)), name


def zero_weights(example: Example) -> None:
    """A weight of 0: answers and gradients are finite, and the gradients in what is no weight are right."""
    for name in example.zeros:
        weights = example.tensors[name].clone()
        weights[..., -1] = 0
        weights = weights / weights.sum(dim=-1, keepdim=True)
        assert all(one.isfinite().all() for one in answers(example, **{name: weights}))
        rest = {other: x for other, x in example.tensors.items() if other in example.laws} | {name: weights}
        others = {other: x for other, x in example.tensors.items() if other not in rest}
        gradients(replace(example, tensors=others, call=partial(example.call, **rest), laws=()))
        leaf = weights.clone().requires_grad_()
        total = sum(one.sum() for one in answers(example, **{name: leaf}))
        if total.requires_grad:
            total.backward()
            assert leaf.grad.isfinite().all(), f"the gradient in {name} is not finite"


def laws_of(example: Example, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Laws sum to one again, after they were rounded."""
    return {name: x / x.sum(dim=-1, keepdim=True) if name in example.laws else x for name, x in tensors.items()}


def precision(example: Example) -> None:
    """float32, float16 and bfloat16: near float64 on the same numbers, or refused."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        low = laws_of(example, each(example, lambda x: x.to(dtype)))  # noqa: B023
        found = refused(example, **low)
        if found is not None and example.compared:
            right = answers(example, **laws_of(example, {name: x.double() for name, x in low.items()}))
            agree(found, right, example.roundings * torch.finfo(dtype).eps)


def far(example: Example) -> None:
    """A constant that changes nothing, in float32."""
    for name in example.far:
        plain = laws_of(example, each(example, lambda x: x.float())) | {name: (example.tensors[name] + FAR).float()}
        right = answers(example, **laws_of(example, {other: x.double() for other, x in plain.items()}))
        agree(answers(example, **plain), right, 1e-5)


def meta(example: Example) -> None:
    """Tensors without values: the right shape, or one line."""
    found = refused(example, "meta", **each(example, lambda x: x.to("meta")))
    assert found is None or [one.shape for one in found] == [one.shape for one in answers(example)]


PROBES = (non_contiguous, batch, gradients, zero_weights, precision, far, meta)
CASES = [(paper, name, probe) for paper, examples in EXAMPLES.items() for name in examples for probe in PROBES]


@pytest.mark.parametrize(("paper", "name", "probe"), CASES, ids=lambda each: getattr(each, "__name__", each))
def test_it_answers_rightly_or_in_one_line(paper, name, probe):
    probe(EXAMPLES[paper][name])


@pytest.mark.parametrize("paper", EXAMPLES)
def test_every_public_name_has_an_example(paper):
    names, plain = {*importlib.import_module(f"derived.papers.{paper}").__all__}, {*WITHOUT_TENSORS.get(paper, ())}
    known = {*EXAMPLES[paper]}
    assert not names - known - plain, f"{paper} has names without an example in sweep.py"
    assert not (known | plain) - names, f"sweep.py has names that {paper} has not"
    assert not known & plain


def test_every_paper_is_swept():
    assert {*EXAMPLES} == {path.parent.name for path in PAPERS.glob("*/__init__.py")}


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8], ids=["plain", "marked"])
def test_a_text_may_begin_with_a_mark(tmp_path, mark):
    (tmp_path / "text").write_bytes(mark + "Où es-tu ?".encode())
    assert read_corpus(tmp_path / "text") == "ou es tu"
