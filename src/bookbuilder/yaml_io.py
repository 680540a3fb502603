"""Reads the YAML files that people write; pydantic checks their shapes."""

from pathlib import Path
from typing import Any, TypeVar, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from bookbuilder.paths import UserError

T = TypeVar("T")


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
        content = yaml.load(path.read_text("utf-8-sig"), _Loader)
    except yaml.MarkedYAMLError as error:
        raise UserError(f"{path.name}, line {error.problem_mark.line + 1}: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path.name} cannot be read: {' '.join(str(error).split())}") from None
    try:
        return TypeAdapter(shape).validate_python(content, strict=True)
    except ValidationError as error:
        inside = max(error.errors(), key=lambda one: len(one["loc"]))  # of shapes that an entry may have: the nearest
        place = ": ".join(map(str, [path.name, *inside["loc"]]))
        raise UserError(f"{place}: {inside['msg']}; found {inside['input']!r:.80}") from None
