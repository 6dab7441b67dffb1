"""Rules for the OpenAPI document. Each function returns the places that break a rule."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]
METHODS = ("get", "post", "put", "patch", "delete")
OPERATION_ID = re.compile(r"([a-z]+)(?:[A-Z][a-z]+)+")
# Of batchGet, the second word is part of the verb.
VERB_NAMES = """
    accept approve archive assign batch complete confirm copy create delete diff end export get ignore
    import list move order override preview protect publish push rebuild refresh reject remove render
    replace replay report resend reset restore revoke rollback rotate search set supersede unignore unpin
    update verify waive withdraw
"""
VERBS = frozenset(VERB_NAMES.split())
WRONG_ARTICLE = re.compile(r"\b[Aa] (?!user|unique)[aeiou]\w*|\b[Aa]n (?![aeiou]|[A-Z]|SHA|hour)\w+")


def list_operations(document: Document) -> Iterator[tuple[str, Document]]:
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield f"{method.upper()} {path}", item[method]


def list_texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every summary and description of the document with its place."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in {"summary", "description"} and isinstance(inner, str):
                yield f"{path}/{name}", inner
            else:
                yield from list_texts(inner, f"{path}/{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from list_texts(inner, f"{path}/{index}")


def find_bad_operation_ids(document: Document) -> list[str]:
    """Ids are unique, in lowerCamelCase, and begin with a known verb."""
    ids = {place: operation.get("operationId", "") for place, operation in list_operations(document)}
    count = Counter(ids.values())
    return [
        f"{place}: {name!r}"
        for place, name in ids.items()
        if not (match := OPERATION_ID.fullmatch(name)) or match[1] not in VERBS or count[name] > 1
    ]


def find_wrong_articles(document: Document) -> list[str]:
    return [
        f"{place}: {match[0]}"
        for place, text in list_texts(document)
        if (match := WRONG_ARTICLE.search(text))
    ]


def find_undescribed_tags(document: Document) -> list[str]:
    described = {tag["name"] for tag in document["tags"] if tag.get("description")}
    return [
        place for place, operation in list_operations(document) if not set(operation["tags"]) <= described
    ]
