"""Data that people write and the book keeps: YAML and JSON files, read with their shape checked.

shape  a type; ``[shape]``, a list; ``{type: shape}``, a mapping with any keys; ``{"name": shape}``, one with these,
       those that end with ``?`` need not be there; ``(type, mapping)``, either
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from derived.book.house import House, UserError

WORDS = {str: "words", int: "a number", bool: "true or false", list: "a list", dict: "names with values"}


def read(path: Path, shape: Any) -> Any:
    """What a file holds, empty where it is not there; UserError where it cannot be read or has another shape."""
    if not path.is_file():
        return [] if isinstance(shape, list) else {}
    try:
        text = path.read_text("utf-8")
        found = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        raise UserError(f"{path.name}, line {error.problem_mark.line + 1}: {error.problem}") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{path.name}, line {error.lineno}: {error.msg}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path.name} cannot be read: {' '.join(str(error).split())}") from None
    check(found, shape, path.name)
    return found


def check(value: Any, shape: Any, where: str) -> None:
    """UserError where a value has another shape."""
    if isinstance(shape, tuple):
        shape = shape[isinstance(value, dict)]
    kind = shape if isinstance(shape, type) else type(shape)
    if not isinstance(value, kind):
        raise UserError(f"{where}: {WORDS[kind]} must stand here; found {value!r}")
    if isinstance(shape, list):
        for place, each in enumerate(value, 1):
            check(each, shape[0], f"{where}, entry {place}")
    if isinstance(shape, dict):
        _check_names(value, shape, where)


def _check_names(value: dict[Any, Any], shape: dict[Any, Any], where: str) -> None:
    for name, each in shape.items():
        if isinstance(name, type):
            for key, under in value.items():
                check(key, name, where)
                check(under, each, f"{where}: {key}")
        elif name.rstrip("?") in value:
            check(value[name.rstrip("?")], each, f"{where}: {name.rstrip('?')}")
        elif not name.endswith("?"):
            raise UserError(f"{where}: it lacks {name}")


def check_chapters(root: Path, slugs: Iterable[str], where: str) -> None:
    """UserError where a slug is that of no chapter of the book; one that is only not in this build may be named."""
    chapters = House(root).chapters()
    unknown = [slug for slug in slugs if slug not in chapters]
    if unknown:
        raise UserError(f"{where}: the book has no chapter {unknown[0]}; it has {', '.join(chapters)}")


def parted(entry: str, sign: str | None, where: str) -> list[str]:
    """The two parts of an entry, such as the slug and the label of ``slug#label``."""
    parts = entry.split(sign)
    if len(parts) != 2 or not all(parts):
        raise UserError(f"{where}: an entry is {f'slug{sign}label' if sign else 'slug minutes'}; found {entry!r}")
    return parts
