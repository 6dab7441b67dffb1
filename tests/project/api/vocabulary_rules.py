"""Rules for the shape of paths, parameters and fields. Each function returns violations."""

import re
from collections.abc import Iterator
from typing import Any

from tests.project.api.document_rules import Document, list_operations

SEGMENT = re.compile(r"[a-z]+(?:-[a-z]+)*|\{[a-z]+\}|SKILL\.md|prompt\.md")
ACTION = re.compile(r"[a-z]+(?:[A-Z][a-z]+)*")
FIELD = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
# Points in time that are no timestamps of an event.
TIMES = {
    "at",
    "as_of",
    "now",
    "since",
    # The name in Standard Webhooks.
    "timestamp",
    "until",
    "updated_since",
    "outdated_since",
    "valid_from",
    "valid_until",
}


def find_odd_paths(document: Document) -> list[str]:
    """Segments are in kebab-case, and an action after a colon is in lower camel case."""
    found = []
    for path in document["paths"]:
        *segments, last = path.removeprefix("/api/v1/").split("/")
        last, _, action = last.partition(":")
        is_odd = not all(SEGMENT.fullmatch(segment) for segment in (*segments, last))
        if is_odd or (action and not ACTION.fullmatch(action)) or "{key}" in path:
            found.append(path)
    return found


def find_scattered_paths(document: Document) -> list[str]:
    """What belongs to an agent on a channel is below `agents/{agent}/channels/{channel}/`."""
    return [path for path in document["paths"] if re.search(r"(?<!/channels)/\{channel\}", path)]


def list_fields(value: Any, place: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the place, name and schema of every property below a part of the document."""
    if isinstance(value, dict):
        properties = value.get("properties")
        if isinstance(properties, dict):
            for name, schema in properties.items():
                yield place, name, schema
        for name, inner in value.items():
            yield from list_fields(inner, f"{place}/{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from list_fields(inner, f"{place}/{index}")


def list_names(document: Document) -> Iterator[tuple[str, str, Any]]:
    for place, operation in list_operations(document):
        for parameter in operation.get("parameters", []):
            if parameter.get("in") == "query":
                yield place, parameter["name"], parameter["schema"]
    for part in ("paths", "components"):
        yield from list_fields(document[part], part)


def find_odd_fields(document: Document) -> list[str]:
    """Fields are in snake_case, and timestamps end in `_at`."""
    found = set()
    for place, name, schema in list_names(document):
        is_timestamp = isinstance(schema, dict) and schema.get("format") == "date-time"
        if not FIELD.fullmatch(name) or (is_timestamp and not name.endswith("_at") and name not in TIMES):
            found.add(f"{place}: {name}")
    return sorted(found)


def find_odd_lists(document: Document) -> list[str]:
    """A list that GET returns has `items` and `next_cursor`, and nothing else."""
    found = []
    for place, operation in list_operations(document):
        response = resolve(document, operation["responses"].get("200", {}))
        schema = response.get("content", {}).get("application/json", {}).get("schema", {})
        schema = resolve(document, schema)
        fields = set(schema.get("properties", ()))
        if place.startswith("GET") and fields & {"data", "items", "next_cursor"} and len(fields) < 4:
            found += [] if fields == {"items", "next_cursor"} else [place]
    return found


def resolve(document: Document, value: Document) -> Document:
    kind, _, name = value.get("$ref", "").removeprefix("#/components/").partition("/")
    return document["components"][kind][name] if name else value
