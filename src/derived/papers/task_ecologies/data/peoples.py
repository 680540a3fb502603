"""Real ecologies of words: given names by language, letters of speeches by era, and names as worlds.

words    strings of a to z: a name, or a chunk of a speech without spaces
lists    of words: three ecologies to read, two relatives, two aliens
text     the opening token, a word, the opening token, a word, ..., cut to one length
"""

import ast
from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from derived.lab.real import texts
from derived.lab.real.pinned import path

from .corpora import chunk_text, plain

CATEGORIES = ("trained", "trained", "trained", "relative", "relative", "alien", "alien")
FAMILIES = (
    ("da_DK", "no_NO", "sv_SE", "de_DE", "nl_NL"),
    ("it_IT", "es_CO", "fr_FR", "pt_PT", "ro_RO"),
    ("cs_CZ", "sk_SK", "hr_HR", "sl_SI", "lv_LV"),
)  # Germanic, Romance, Balto-Slavic
ALIENS = ("fi_FI", "tr_TR", "id_ID", "uz_UZ", "tw_GH")
Lists = tuple[list[str], list[list[str]], list[list[str]]]


def names_by_language(replicate: int, held_from: int, generator: torch.Generator) -> Lists:
    """Seven languages, their first ``held_from`` given names in random order, and the others.

    Five languages of a family in random order, three of them to read, and two of no family here.
    """
    family = FAMILIES[replicate % len(FAMILIES)]
    chosen = _shuffled(family, generator) + _shuffled(ALIENS, generator)[:2]
    known = [_shuffled(_words(language), generator) for language in chosen]
    return chosen, [each[:held_from] for each in known], [each[held_from:] for each in known]


def _words(language: str) -> list[str]:
    single = (plain(name) for name in texts.given_names(language) if len(name.split()) == 1)
    return sorted({word for word in single if word.isalpha()})


def chunks_by_era(replicate: int, held_from: int, generator: torch.Generator) -> Lists:
    """Seven eras of State of the Union speeches, chunks from the middle of half of an era's speeches, and of the rest.

    Three neighbouring eras to read, at the beginning or at the end of all; the next two; and the farthest two.
    """
    speeches = texts.speeches()
    share = len(speeches) // len(CATEGORIES)
    eras = [speeches[place * share : (place + 1) * share] for place in range(len(CATEGORIES))]
    eras = eras[:: -1 if replicate % 2 else 1]
    halves = [(era[0].year, *_halved(_shuffled(era, generator))) for era in eras]
    labels, read, held = zip(*halves, strict=True)
    some = lambda half: _shuffled([word for one in half for word in _chunks(one.text)], generator)[:held_from]  # noqa: E731
    return [f"from {year}" for year in labels], [some(half) for half in read], [some(half) for half in held]


def _chunks(text: str) -> list[str]:
    middle = len(text) // 2
    return chunk_text(plain(text[max(middle - 2000, 0) : middle + 2000]), 24)


def _halved(some: list) -> tuple[list, list]:
    return some[: len(some) // 2], some[len(some) // 2 :]


def _shuffled(some: Sequence, generator: torch.Generator) -> list:
    return [some[place] for place in torch.randperm(len(some), generator=generator)]


def dealt(lists: list[list[str]], generator: torch.Generator) -> list[list[str]]:
    """The same words in lists of the same lengths, dealt by chance."""
    pool = iter(_shuffled([word for each in lists for word in each], generator))
    return [[next(pool) for _ in each] for each in lists]


def unread(held: list[list[str]], read: list[list[str]]) -> list[list[str]]:
    """The held-out words that are in none of the lists to read; ValueError for a list of which none is left."""
    known = {word for each in read for word in each}
    left = [[word for word in each if word not in known] for each in held]
    if empty := left.count([]):
        raise ValueError(f"of {empty} lists all held-out words are read elsewhere; give longer lists")
    return left


def drawn_texts(words: Sequence[str], count: int, length: int, generator: torch.Generator) -> Int[Tensor, "count T"]:
    """Texts of random words, ``length`` tokens after the opening one.

    >>> drawn_texts(["ab"], 1, 4, torch.Generator())
    tensor([[26,  0,  1, 26,  0]])
    """
    picks = torch.randint(len(words), (count, length // 2 + 1), generator=generator)
    joined = ["".join("{" + words[place] for place in row)[: length + 1] for row in picks]
    return torch.tensor([[ord(letter) - ord("a") for letter in text] for text in joined])  # "{" comes after "z"


#: Sentences that a name opens: after the first ones a pronoun may come, the next word of the others has no gender.
TELLING = ("Yesterday {} said that", "Yesterday {} smiled because", "When {} came home", "Today {} was late because")
SILENT = (
    "Yesterday {} flew from London to New",
    "Yesterday {} counted one, two, three,",
    "When {} was born in the United",
    "Today {} was late because of the",
)


def names_by_gender() -> tuple[list[str], list[str]]:
    """American given names of women and of men, without those in both lists."""
    tree = ast.parse((path("faker") / "faker/providers/person/en_US/__init__.py").read_text("utf-8"))
    lists = {ast.unparse(node.targets[0]): node.value for node in ast.walk(tree) if isinstance(node, ast.Assign)}
    women, men = (
        {pair.elts[0].value for pair in lists[f"first_names_{gender}"].args[0].elts} for gender in ("female", "male")
    )
    return sorted(women - men), sorted(men - women)
