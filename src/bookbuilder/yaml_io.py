"""Reads the YAML and JSON files that people write, with their shapes checked by pydantic."""

import json
from pathlib import Path
from typing import Any, TypeVar, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from bookbuilder.paths import UserError

T = TypeVar("T")
NAMES = {
    "string_type": "a string",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}


class _Loader(yaml.CSafeLoader):
    """YAML in which a mapping has a key once: of two, the plain loader silently drops the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping; raise ConstructorError for a key that is there twice."""
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value} is there twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class Shape(BaseModel):
    """A mapping with these keys and no others."""

    model_config = ConfigDict(strict=True, extra="forbid")


def read(path: Path, shape: type[T]) -> T:
    """Read a file as ``shape``, empty without the file; raise UserError, one line, where it does not fit."""
    if not path.is_file():
        return get_origin(shape)()
    try:
        text = path.read_text("utf-8-sig")
        content = json.loads(text) if path.suffix == ".json" else yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        raise UserError(f"{path.name}, line {error.problem_mark.line + 1}: {error.problem}") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{path.name}, line {error.lineno}: {error.msg}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path.name} cannot be read: {' '.join(str(error).split())}") from None
    try:
        return TypeAdapter(shape).validate_python(content, strict=True)
    except ValidationError as error:
        raise UserError(_message(path.name, content, error)) from None


def _message(name: str, content: Any, error: ValidationError) -> str:
    """The first error with its place; of an entry that fits none of several shapes, the one furthest inside."""
    first, *others = error.errors()
    for other in others:
        if other["loc"][:1] == first["loc"][:1] and len(other["loc"]) > len(first["loc"]):
            first = other
    *_, last = first["loc"] or ("",)
    place, value = name, content
    for step in first["loc"]:
        if isinstance(value, list):
            place, value = f"{place}, entry {step + 1}", value[step]
        elif isinstance(value, dict) and step in value:
            place, value = f"{place}: {step}", value[step]
    if first["type"] == "missing":
        return f"{place}: {last} is missing"
    if first["type"] == "extra_forbidden":
        return f"{place}: unknown key; remove it or correct its spelling"
    wanted = NAMES.get(first["type"])
    return f"{place}: {f'{wanted} is expected' if wanted else first['msg']}; found {first['input']!r}"


def parted(entry: str, where: str) -> list[str]:
    """Split an entry ``slug#label`` in two."""
    parts = entry.split("#")
    if len(parts) != 2 or not all(parts):
        raise UserError(f"{where}: an entry is slug#label; found {entry!r}")
    return parts
