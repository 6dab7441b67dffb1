"""The same prompts as Jinja2 templates with autoescape, compiled once, as many teams write them."""

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
FIXED_TEXT = re.compile(r"\[\[(\w+)\.(\w+)((?:\.\d+)*)\]\]")


class FixedTextLoader(FileSystemLoader):
    """Template loader that inserts the product's fixed texts into the source."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        source, path, is_current = super().get_source(environment, template)
        return FIXED_TEXT.sub(get_fixed_text, source), path, is_current


def get_fixed_text(match: re.Match[str]) -> str:
    """Return the text for `[[module.NAME]]`, or for `[[module.NAME.1.0]]` if it is an item of a tuple."""
    module, name, indexes = match.groups()
    text: Any = getattr(import_module(f"prompts.assembly.texts.{module}"), name)
    for index in indexes.split(".")[1:]:
        text = text[int(index)]
    return text if isinstance(text, str) else "".join(text)


ENVIRONMENT = Environment(
    loader=FixedTextLoader(FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True
)


def get_template(layout: str) -> Template:
    return ENVIRONMENT.get_template(f"{layout}.j2")


def get_variables(inputs: PromptInputs) -> dict[str, Any]:
    """Return the template variables: the inputs by name, and the data types, which it cannot compute."""
    return {field.name: getattr(inputs, field.name) for field in fields(inputs)} | {
        "types": get_data_types(inputs.data or Data())
    }
