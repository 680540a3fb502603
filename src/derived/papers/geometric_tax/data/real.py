"""Human DNA, read from a package of ``lab.real``."""

import torch
from jaxtyping import UInt8
from torch import Tensor

from derived.lab.real.pinned import path

from .dna import LETTERS, encode


def human_dna(entry: str) -> UInt8[Tensor, "L"]:
    """The letters of one of the human entries of EMBL (package ``emboss``); what is not known is N."""
    text = (path("emboss") / "usr/share/EMBOSS/test/embl/hum1.dat").read_text("utf-8")
    (found,) = (record for record in text.split("\n//") if record.lstrip().startswith(f"ID   {entry};"))
    _, _, body = found.partition("\nSQ ")
    letters = "".join(filter(str.isalpha, body.partition("\n")[2])).upper()
    return encode("".join(letter if letter in LETTERS else "N" for letter in letters), entry)


def stretches(s: UInt8[Tensor, "letters"], num: int, L: int) -> UInt8[Tensor, "num n L"]:
    """As many equal stretches of a sequence, one after the other, each cut into windows of L letters; windows with an N
    are left out, and then as many at the end of the other stretches that all have n.

    >>> stretches(torch.tensor([0, 1, 2, 3, 4, 0, 3, 3], dtype=torch.uint8), 2, 2).tolist()
    [[[0, 1]], [[3, 3]]]
    """
    n = len(s) // (num * L)
    windows = s[: num * n * L].view(num, n, L)
    known = [stretch[(stretch < 4).all(dim=1)] for stretch in windows]
    return torch.stack([each[: min(map(len, known))] for each in known])
