"""The same prompts the way many teams make them: one Jinja2 template each, with autoescape, compiled once."""

import re
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, Template

from prompts.assembly.data_inventory import get_data_types
from prompts.assembly.inputs import Data, PromptInputs

FOLDER = Path(__file__).parent / "templates"
STANDING = re.compile(r"\[\[(\w+)\.(\w+)((?:\.\d+)*)\]\]")


class Loader(FileSystemLoader):
    """Puts the product's standing words into the source, as if they had been typed there."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        source, path, is_current = super().get_source(environment, template)
        return STANDING.sub(standing, source), path, is_current


def standing(place: re.Match[str]) -> str:
    """The words behind `[[module.NAME]]`, or behind `[[module.NAME.1.0]]` if they lie inside a table."""
    module, name, inside = place.groups()
    words: Any = getattr(import_module(f"prompts.assembly.texts.{module}"), name)
    for index in inside.split(".")[1:]:
        words = words[int(index)]
    return words if isinstance(words, str) else "".join(words)


ENVIRONMENT = Environment(loader=Loader(FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True)


def template(layout: str) -> Template:
    return ENVIRONMENT.get_template(f"{layout}.j2")


def values(inputs: PromptInputs) -> dict[str, Any]:
    """What a template is given: the inputs by name, and the types, which it could not read by itself."""
    return {each.name: getattr(inputs, each.name) for each in fields(inputs)} | {
        "types": get_data_types(inputs.data or Data())
    }
