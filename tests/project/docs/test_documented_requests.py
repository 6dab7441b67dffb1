"""Requests that the documentation names exist, with their parameters, and their bodies match the schema."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from project.api.docs_views import get_openapi_document

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("api.md", "keys.md", "releases.md", "webhooks.md", "events.md", "evidence.md", "inputs.md")
REQUEST = re.compile(
    r"`(?P<method>GET|POST|PUT|PATCH|DELETE) (?P<path>/[^`\s]*)`(?:, `/[^`]*`)*"
    r"(?: with `(?P<body>\{[^`]*\})`)?"
)
# Paths that stand for several kinds of records.
GENERIC = ("/{kind}:", "/{list}:")


class DocumentedRequest(NamedTuple):
    """A request in the documentation, with the place where it is."""

    place: str
    method: str
    path: str
    body: str


def list_documented_requests(texts: dict[str, str]) -> list[DocumentedRequest]:
    return [
        DocumentedRequest(f"{name}: {match[0]}", match["method"].lower(), match["path"], match["body"] or "")
        for name, text in texts.items()
        for match in REQUEST.finditer(text)
        if not match["path"].startswith(GENERIC)
    ]


def find_wrong_requests(requests: list[DocumentedRequest]) -> list[str]:
    """Return what is wrong with the requests, by their place."""
    document = get_openapi_document()
    operations = {
        (method, normalize_path(path)): (item, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    }
    found = []
    for request in requests:
        path, _, query = request.path.removeprefix("/api/v1").partition("?")
        item, operation = operations.get((request.method, normalize_path(path)), ({}, None))
        if operation is None:
            found.append(f"{request.place}: no such operation")
            continue
        known = {
            resolve(document, one)["name"]
            for one in (*item.get("parameters", ()), *operation.get("parameters", ()))
        }
        names = [pair.partition("=")[0] for pair in query.split("&") if pair]
        found += [f"{request.place}: no parameter {name}" for name in names if name not in known]
        if request.body:
            content = resolve(document, operation["requestBody"])["content"]
            schema = next(iter(content.values()))["schema"] | {"components": document["components"]}
            errors = Draft202012Validator(schema).iter_errors(json.loads(request.body))
            found += [f"{request.place}: {error.message}" for error in errors]
    return found


def normalize_path(path: str) -> str:
    path = path.removeprefix("/api/v1")
    return re.sub(r"\{[^}]*\}", "{}", path)


def resolve(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in node:
        return node
    found: Any = document
    for name in node["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    resolved: dict[str, Any] = found
    return resolved


def test_every_documented_request_is_an_operation_with_a_valid_body():
    requests = list_documented_requests({name: (DOCS / name).read_text() for name in PAGES})
    assert len(requests) >= 40
    assert sum(bool(request.body) for request in requests) >= 10
    assert find_wrong_requests(requests) == []


@pytest.mark.planted
@pytest.mark.parametrize(
    "text",
    [
        "`POST /agents:impact`",
        "`GET /search?text=lantern`",
        '`POST /identities:import`, `/souls:import` with `{"name": "Fox", "text": "…"}`',
    ],
)
def test_a_wrong_request_is_detected(text):
    assert find_wrong_requests(list_documented_requests({"page": text}))
