"""Real long text that every machine of this book has: the bytes of an installed package's Python sources."""

from importlib.util import find_spec
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from derived.lab.checks import check_count


def python_bytes(package: str = "torch", length: int | None = None) -> Int[Tensor, "n"]:
    """The bytes, 0 to 255, of all .py files of a package in the order of their paths, at most ``length`` of them.

    What they are depends on the version that is installed. ValueError for a package that is not.

    >>> len(python_bytes("json", 40))
    40
    """
    spec = find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(f"package = {package!r} is not installed here as a folder; give one such as 'torch'")
    if length is not None:
        check_count("length", length)
    found, size = [], 0
    for path in sorted(Path(spec.submodule_search_locations[0]).rglob("*.py")):
        found.append(path.read_bytes())
        size += len(found[-1])
        if length is not None and size >= length:
            break
    return torch.frombuffer(bytearray(b"".join(found)), dtype=torch.uint8)[:length].long()
