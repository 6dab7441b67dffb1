"""Rules for the OpenAPI document. Each function returns the places that break a rule."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from personas.api.validation import build_validator

Document = dict[str, Any]
METHODS = ("get", "post", "put", "patch", "delete")
OPERATION_ID = re.compile(r"([a-z]+)(?:[A-Z][a-z]+)+")
# Of batchGet, the second word is part of the verb.
VERB_NAMES = """
    accept approve archive assign batch complete confirm copy create delete diff end export get ignore
    import list move order override preview protect publish push rebuild refresh reject remove render
    replace replay report request resend reset restore revoke rollback rotate search set supersede unignore
    unpin update verify waive withdraw
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


def walk(value: Any, path: str = "") -> Iterator[tuple[str, Document]]:
    """Yield every object of the document with its JSON pointer, examples left out."""
    if isinstance(value, dict):
        yield path, value
        for name, inner in value.items():
            if name not in {"example", "examples"}:
                yield from walk(inner, f"{path}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from walk(inner, f"{path}/{index}")


def follow_reference(document: Document, value: Document) -> Document:
    """Return what a reference refers to; another value as it is."""
    target: Any = document
    for name in value["$ref"].removeprefix("#/").split("/") if "$ref" in value else ():
        target = target[name]
    return value if target is document else dict(target)


def resolve(document: Document, value: Document) -> Document:
    """Return the value with all references replaced by what they refer to, also nested ones."""
    if "$ref" in value:
        return resolve(document, follow_reference(document, value))
    return {name: resolve_any(document, inner) for name, inner in value.items()}


def resolve_any(document: Document, value: Any) -> Any:
    if isinstance(value, dict):
        return resolve(document, value)
    return [resolve_any(document, inner) for inner in value] if isinstance(value, list) else value


def find_anonymous_schemas(document: Document) -> list[str]:
    """Objects and lists of choices are named components, so that generated types have names."""
    found = []
    for path, value in walk(document):
        is_object = isinstance(value.get("properties"), dict)
        is_choice = isinstance(value.get("enum"), list) and value.get("type") == "string"
        is_component = path.startswith("/components/schemas/") and path.count("/") == 3
        # Conditions restrict the fields of a named object.
        is_condition = not {"if", "then", "else"}.isdisjoint(path.split("/"))
        if (is_object or is_choice) and not (is_component or is_condition or path.endswith("/properties")):
            found.append(path)
    return found


def find_defaults_in_bodies(document: Document) -> list[str]:
    """Request bodies have no defaults: generated clients require or send them, and change other fields."""
    return [
        f"{place}{path}"
        for place, operation in list_operations(document)
        for path, value in walk(resolve(document, operation.get("requestBody", {})))
        if "default" in value and not path.endswith("/properties")
    ]


def find_arrays_without_items(document: Document) -> list[str]:
    return [
        path
        for path, value in walk(document)
        if "array" in (value["type"] if isinstance(value.get("type"), list) else [value.get("type")])
        and "items" not in value
    ]


def find_unresolved_references(document: Document) -> list[str]:
    found = []
    for path, value in walk(document):
        if isinstance(value.get("$ref"), str):
            try:
                resolve(document, value)
            except KeyError:
                found.append(f"{path}: {value['$ref']}")
    return found


def find_unused_components(document: Document) -> list[str]:
    used = {value["$ref"] for _, value in walk(document) if isinstance(value.get("$ref"), str)}
    return [
        f"#/components/{kind}/{name}"
        for kind, components in document["components"].items()
        for name in components
        if kind != "securitySchemes" and f"#/components/{kind}/{name}" not in used
    ]


def list_json_media(document: Document) -> Iterator[tuple[str, Document]]:
    """Yield the JSON request body and successful response of every operation."""
    for place, operation in list_operations(document):
        messages = [("request", operation.get("requestBody", {}))]
        messages += [
            (status, response) for status, response in operation["responses"].items() if status < "300"
        ]
        for name, reference in messages:
            message = follow_reference(document, reference)
            if "application/json" in message.get("content", {}):
                yield f"{place} {name}", message["content"]["application/json"]


def get_examples(document: Document, media: Document) -> list[Any]:
    """Return the examples of a body: its own, or those of its schema. A page has an example of its items."""
    if "example" in media:
        return [media["example"]]
    schema = follow_reference(document, media["schema"])
    fields = schema.get("properties", {})
    if set(fields) <= {"items", "next_cursor"} and "items" in fields:
        examples = follow_reference(document, fields["items"]["items"]).get("examples", [])
        page = {"next_cursor": None} if "next_cursor" in fields else {}
        return [{"items": [example], **page} for example in examples]
    return list(schema.get("examples", []))


def find_missing_examples(document: Document) -> list[str]:
    return [place for place, media in list_json_media(document) if not get_examples(document, media)]


def find_wrong_examples(document: Document) -> list[str]:
    """Return the examples that do not conform to their schema."""
    found = []
    for place, media in list_json_media(document):
        schema = {**media["schema"], "components": document["components"]}
        validator = build_validator(schema)
        for example in get_examples(document, media):
            found += [
                f"{place}{error.json_path}: {error.message}" for error in validator.iter_errors(example)
            ]
    return found


def get_required_scope(document: Document, operation: Document) -> str:
    """Return the verb that the key of an operation needs, by its own security scheme or the default one."""
    security = operation["security"] if "security" in operation else document["security"]
    [scheme] = security[0]
    scope: str = document["components"]["securitySchemes"][scheme]["x-required-scope"]
    return scope


def find_undescribed_operations(document: Document) -> list[str]:
    """Every operation has a description of its own."""
    descriptions = {place: operation.get("description", "") for place, operation in list_operations(document)}
    return [place for place, description in descriptions.items() if not description.strip()]


def find_undescribed_schemes(document: Document) -> list[str]:
    """Every security scheme describes the verb that it stands for."""
    return [
        name
        for name, scheme in document["components"]["securitySchemes"].items()
        if (f"`{scheme['x-required-scope']}`" if scheme["x-required-scope"] else "no verb")
        not in scheme["description"]
    ]


def find_undescribed_parameters(document: Document) -> list[str]:
    parameters = [
        (f"/components/parameters/{name}", parameter)
        for name, parameter in document["components"]["parameters"].items()
    ]
    for path, item in document["paths"].items():
        parameters += [(path, parameter) for parameter in item.get("parameters", [])]
    for place, operation in list_operations(document):
        parameters += [(place, parameter) for parameter in operation.get("parameters", [])]
    return [
        f"{place} {parameter['name']}"
        for place, parameter in parameters
        if "$ref" not in parameter and not parameter.get("description")
    ]


def find_vague_path_parameters(document: Document) -> list[str]:
    """A path parameter says what it is: `{slug}`, `{id}` or `{digest}`, not `{key}`."""
    return [path for path in document["paths"] if "{key}" in path]
