"""The tool definitions of a version: parsed from storage, formatted for reading, and measured. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prompts.assembly.json_codec import dataclass_json
from prompts.assembly.tool_definitions import ToolDefinition
from prompts.publishing.versions.segments import encode_json

# A definition as JSON data: name, description and parameters.
DefinitionJson = Mapping[str, Any]


def parse_definitions(data: bytes | str | None) -> list[dict[str, Any]]:
    """Parse stored definitions; empty if the version has none or they were erased."""
    definitions: list[dict[str, Any]] = json.loads(data) if data else []
    return definitions


def list_definitions_json(definitions: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    """Convert the definitions of a build to the JSON data that is stored."""
    return [dataclass_json(definition) for definition in definitions]


def encode_definition(definition: DefinitionJson) -> str:
    """Encode a definition as compact JSON, the form in which its characters and tokens are counted."""
    return encode_json(definition).decode()


def count_definition_tokens(definitions: Iterable[DefinitionJson], count: Callable[[str], int]) -> int:
    """Count the tokens of definitions. Providers format them in their own ways, so this is an estimate."""
    return sum(count(encode_definition(definition)) for definition in definitions)


def format_definition(definition: DefinitionJson) -> str:
    """Format a definition as indented JSON, so that a diff shows single lines."""
    return json.dumps(definition, ensure_ascii=False, indent=2)
