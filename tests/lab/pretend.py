"""A device that pretends to be an accelerator: it keeps its tensors apart from the CPU's and computes on the CPU.

    with pretend.device() as (device, made):  # torch.device("pretend"), and the tensors counted from here on
        x = torch.ones(3, device=device)      # made.count == 1
        x + torch.ones(3)                     # RuntimeError, as on CUDA; x.numpy() is a TypeError

Across devices it allows what CUDA allows: copies, a CPU tensor without dimensions in a pointwise operation, and CPU
indices into a tensor of the device. It cannot follow a change of shape in place, and an exception in a tensor's hook or
in what a checkpoint computes again ends the process: torch's guard of a Python device does not survive one.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

NAME = "pretend"
aten = torch.ops.aten
COPIES = {aten.copy_.default, aten._to_copy.default}
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}
#: Not tagged as pointwise, yet CUDA takes a CPU tensor without dimensions for their value.
VALUED = {aten.fill.Tensor, aten.fill_.Tensor, aten.masked_fill.Tensor, aten.masked_fill_.Tensor}


@dataclass
class Made:
    """How many tensors were made on the device."""

    count: int = 0


_made = Made()


def _each(change: Callable[[torch.Tensor], Any], value: Any) -> Any:
    """``value`` with each tensor in it changed; operators hold them in plain lists and tuples."""
    if isinstance(value, torch.Tensor):
        return change(value)
    return type(value)([_each(change, item) for item in value]) if type(value) in (list, tuple) else value


class PretendTensor(torch.Tensor):
    """A tensor of the device: autograd and shapes are its own, the values are those of the CPU tensor ``inner``."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: torch.Tensor):
        _made.count += 1
        layout = {"strides": inner.stride(), "storage_offset": inner.storage_offset(), "dtype": inner.dtype}
        self = torch.Tensor._make_wrapper_subclass(cls, inner.size(), **layout, device=torch.device(NAME, 0))
        self.inner = inner
        return self

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if _decomposes(func):
            return func.decompose(*args, **kwargs)
        mine, others = {}, []

        def inner(tensor: torch.Tensor) -> torch.Tensor:
            if not isinstance(tensor, cls):
                others.append(tensor)
                return tensor
            mine[id(tensor.inner)] = tensor
            return tensor.inner

        values = [_each(inner, arg) for arg in args]
        options = {name: _each(inner, arg) for name, arg in kwargs.items()}
        if others and func not in COPIES:
            _check_devices(func, args, others)
        place = options.get("device")
        if place is not None:
            options["device"] = "cpu"
        found = func(*values, **options)
        if _writes(func) and any(tensor.shape != tensor.inner.shape for tensor in mine.values()):
            raise NotImplementedError(f"{func} gives its argument another shape, which a {NAME} tensor cannot follow")
        if place is not None and place.type != NAME:
            return found
        return _each(lambda tensor: mine[id(tensor)] if id(tensor) in mine else cls(tensor), found)

    def numpy(self, *, force: bool = False):
        if not force:
            raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() first.")
        return self.detach().cpu().numpy()

    def tolist(self):
        return self.cpu().tolist()

    def __format__(self, spec: str) -> str:
        return format(self.detach().cpu(), spec)

    def __repr__(self) -> str:
        return f"{self.detach().cpu()!r} on {self.device}"


@cache
def _decomposes(func) -> bool:
    return func._can_decompose()


@cache
def _writes(func) -> bool:
    return func._schema.is_mutable


def _check_devices(func, args, others: list[torch.Tensor]) -> None:
    """RuntimeError where CUDA raises one for an operation on tensors of the device and on ``others``, of the CPU."""
    if func in INDEXED:
        source, indices, *values = args
        if not isinstance(source, PretendTensor) and any(isinstance(index, PretendTensor) for index in indices):
            raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
        others = [tensor for tensor in (source, *values[:1]) if any(tensor is other for other in others)]
    scalars = func in INDEXED | VALUED or torch.Tag.pointwise in func.tags
    written = args[0] if _writes(func) else None
    for tensor in others:
        if tensor.dim() or not scalars or tensor is written:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{NAME}:0 and {tensor.device}! ({func})"
            )


class PretendGenerator(torch.Generator):
    """A generator that knows its device; its numbers are the CPU's."""

    def __new__(cls, device: torch.device | str = "cpu"):
        self = super().__new__(cls)
        self._place = torch.device(device)
        return self

    @property
    def device(self) -> torch.device:
        return self._place


#: What torch refuses to a subclass, called as ``torch.Tensor.tolist(x)``.
METHODS = {torch.Tensor.numpy: PretendTensor.numpy, torch.Tensor.tolist: PretendTensor.tolist}


class _Calls(TorchFunctionMode):
    """Refuses a generator of one device for numbers on another; finds the methods of a pretended tensor."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in METHODS and isinstance(args[0], PretendTensor):
            func = METHODS[func]
        found, generator = func(*args, **kwargs), kwargs.get("generator")
        if generator is not None and generator.device.type != found.device.type:
            raise RuntimeError(
                f"Expected a '{found.device.type}' device type for generator but found '{generator.device.type}'"
            )
        return found


@contextlib.contextmanager
def device() -> Iterator[tuple[torch.device, Made]]:
    """The device, and the count of the tensors made on it, which begins anew."""
    _made.count = 0
    one_thread = torch.autograd.set_multithreading_enabled(False)  # else backward passes go to the device's own thread
    with mock.patch.object(torch, "Generator", PretendGenerator), _Calls(), one_thread:
        yield torch.device(NAME), _made


def _factories() -> Iterator[torch._ops.OpOverload]:
    """The operators that make a tensor from no tensor: zeros, arange, randn, …"""
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("aten::") or "names" in name or "out" in name:
            continue
        packet, _, overload = name.removeprefix("aten::").partition(".")
        func = getattr(getattr(aten, packet), overload or "default")
        kinds = {argument.name: str(argument.type) for argument in func._schema.arguments}
        if {"device", "layout"} <= set(kinds) and not any("Tensor" in kind for kind in kinds.values()):
            yield func


class _Module(_DummyBackendModule):
    """``torch.pretend``; checkpointing asks it what autocast could do."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    def get_rng_state(self, device: object = None) -> torch.Tensor:
        """It draws nothing of its own; ``torch.random.fork_rng`` asks every device for what it must keep."""
        return torch.empty(0, dtype=torch.uint8)

    def set_rng_state(self, state: torch.Tensor, device: object = None) -> None:
        pass


def _register() -> torch.library.Library:
    """Makes the device known to torch, with its factory functions and what ``torch.tensor`` asks of it."""
    _setup_privateuseone_for_python_backend(NAME, _Module())
    library = torch.library.Library("aten", "IMPL")

    def factory(func):
        return lambda *args, **kwargs: PretendTensor(func(*args, **{**kwargs, "device": "cpu"}))

    for func in _factories():
        library.impl(func, factory(func), "PrivateUse1")
    library.impl("_copy_from", lambda source, target, non_blocking=False: target.inner.copy_(source), "PrivateUse1")
    library.impl("_local_scalar_dense", lambda tensor: tensor.inner.item(), "PrivateUse1")
    return library


_library = _register()
