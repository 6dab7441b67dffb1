"""A part of the OpenAPI document: some operations, and the components that they use."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

PARTS = ("schemas", "parameters", "headers", "responses", "requestBodies")


def select_operations(document: Mapping[str, Any], operation_ids: Iterable[str]) -> dict[str, Any]:
    """Return the document with these operations only. Raise ValueError if there is no such operation."""
    wanted = set(operation_ids)
    paths: dict[str, Any] = {}
    for path, item in document["paths"].items():
        operations = {
            method: operation
            for method, operation in item.items()
            if method != "parameters" and operation["operationId"] in wanted
        }
        wanted -= {operation["operationId"] for operation in operations.values()}
        if operations:
            shared = {"parameters": item["parameters"]} if "parameters" in item else {}
            paths[path] = shared | operations
    if wanted:
        raise ValueError(f"Unknown operation: {', '.join(sorted(wanted))}.")
    used = find_used_components(document, paths)
    tags = {operation["tags"][0] for item in paths.values() for operation in list_methods(item)}
    components = document["components"]
    return {
        **{key: document[key] for key in ("openapi", "jsonSchemaDialect", "security")},
        # Only title and version, without the addresses of this installation.
        "info": {key: document["info"][key] for key in ("title", "version")},
        "tags": [tag for tag in document["tags"] if tag["name"] in tags],
        "paths": paths,
        "components": {"securitySchemes": components["securitySchemes"]}
        | {
            part: {name: value for name, value in components[part].items() if (part, name) in used}
            for part in PARTS
            if any(kind == part for kind, _ in used)
        },
    }


def list_methods(item: Mapping[str, Any]) -> list[Any]:
    return [operation for method, operation in item.items() if method != "parameters"]


def find_used_components(document: Mapping[str, Any], value: Any) -> set[tuple[str, str]]:
    """Return part and name of the components that a value refers to, also through other components."""
    used: set[tuple[str, str]] = set()
    waiting = list(list_references(value))
    while waiting:
        reference = waiting.pop()
        if reference not in used:
            used.add(reference)
            part, name = reference
            waiting += list_references(document["components"][part][name])
    return used


def list_references(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        if isinstance(target := value.get("$ref"), str):
            part, name = target.removeprefix("#/components/").split("/")
            yield part, name
        for inner in value.values():
            yield from list_references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from list_references(inner)
