"""Path parameters of the OpenAPI document: names, schemas and descriptions, derived from URL patterns."""

import re
from collections.abc import Iterator
from typing import Any

from django.urls import URLPattern

from personas.api.schema import (
    NAME_PATTERN,
    Schema,
    digest_schema,
    integer_schema,
    slug_schema,
    to_camel_case,
)

PATH_PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")
CONVERTER_SCHEMAS: dict[str, Schema] = {
    "slug": slug_schema(),
    "word": {"type": "string", "pattern": NAME_PATTERN, "maxLength": 64},
    "int": integer_schema(0, 2**31 - 1),
    "str": {"type": "string", "minLength": 1},
    "path": {"type": "string", "format": "relative-path", "minLength": 1, "maxLength": 1_000},
    "digest": digest_schema(),
}
NAME_SCHEMAS: dict[str, Schema] = {"label": slug_schema(maxLength=40)}
ATTRIBUTES = frozenset({"slug", "name", "id", "digest", "number"})
PARAMETER_EXAMPLES: dict[str, Any] = {
    "slug": "support",
    "agent": "support",
    "channel": "web",
    "label": "production",
    "name": "search",
    "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "path": "AGENTS.md",
    "id": 12,
    "number": 3,
    "revision": 2,
    "waiver": 2,
}
# Nouns that are not just the path segment without its plural ending.
NOUNS = {"ledger": "ledger entry"}
DESCRIPTIONS = {"position": "The position of the step in the task, from 0.", "path": "The path of the file."}


def get_openapi_path(pattern: URLPattern) -> str:
    return PATH_PARAMETER.sub(r"{\2}", str(pattern.pattern))


def list_path_parameters(pattern: URLPattern) -> list[tuple[str, dict[str, Any]]]:
    """Return the path parameters of a URL, each with the name of its component.

    `AgentSlug` is called `slug` in the path, `AgentParameter` is called `agent`.
    """
    return [
        build_path_parameter(kind, name, resource)
        for kind, name, resource in split_parameters(str(pattern.pattern))
    ]


def split_parameters(route: str) -> Iterator[tuple[str, str, str]]:
    """Yield converter, name and preceding path segment of each parameter of a route."""
    for match in PATH_PARAMETER.finditer(route):
        resource = route[: match.start()].rstrip("/").rpartition("/")[2]
        yield match[1] or "str", match[2], resource


def build_path_parameter(kind: str, name: str, resource: str) -> tuple[str, dict[str, Any]]:
    attribute = name if name in ATTRIBUTES else {"slug": "slug", "int": "number"}.get(kind, "name")
    attribute = "id" if name in ("comment", "waiver", "run") else attribute
    noun = get_noun(resource)
    description = DESCRIPTIONS.get(name) or f"The {attribute} of the {noun}."
    parameter = {"name": name, "in": "path", "required": True, "description": description}
    parameter |= {"schema": NAME_SCHEMAS.get(name, CONVERTER_SCHEMAS[kind])}
    example = PARAMETER_EXAMPLES.get(name)
    parameter |= {"example": example} if example is not None else {}
    if name in DESCRIPTIONS:
        return to_camel_case(f"{noun} {name}"), parameter
    return to_camel_case(f"{noun} {attribute if name == attribute else 'parameter'}"), parameter


def get_noun(resource: str) -> str:
    """Return the singular of a path segment: "memory" for "memories"."""
    noun = NOUNS.get(resource, resource).replace("-", " ")
    if noun.endswith("ies"):
        return f"{noun[:-3]}y"
    return noun.removesuffix("s")
