"""What the peers bench asks of either side: fetch a prompt by label, create a version, move a label."""

import json
from dataclasses import dataclass
from typing import Any

from benches.fetch import HOST, request

# Edits differ by connection and by count; both marks are filled in by the load generator.
EDIT = "Edit @counter@ of @who@. "
MLFLOW = "/api/2.0/mlflow"
Turns = list[list[str]]


@dataclass(frozen=True)
class Work:
    """Operations that a connection carries out in turn, at the server that answers them."""

    name: str
    port: int
    turns: Turns


def our_works(told: dict[str, str], fetched: str, port: int, bare: int) -> list[Work]:
    agent, soul = "/api/v1/agents/pilot-@who@", "/api/v1/souls/soul-@who@"
    address = f"/api/v1/agents/{fetched}/prompt?channel=web&label=production"
    edit = changing("PATCH", soul, told["admin"], {"text": EDIT + told["soul"]})
    label = f"{agent}/prompts/web/labels/canary"
    moves = [changing("PUT", label, told["admin"], {"version": number}) for number in (1, 2)]
    return [
        Work("bare view", bare, [[request("GET", "/bare", told["bot"])]]),
        Work("fetch", port, [[request("GET", address, told["bot"])]]),
        Work("create", port, [[edit]]),
        Work("move", port, [[move] for move in moves]),
    ]


def shared_works(told: dict[str, str], text: str, crew: list[str], ours: int, theirs: int) -> list[Work]:
    """A sentence that several prompts share is changed: one edit here, a version of each there."""
    edit = changing("PATCH", "/api/v1/souls/soul-crew", told["admin"], {"text": EDIT + told["soul"]})
    versions = [plain("POST", "/model-versions/create", created(text, name)) for name in crew]
    return [Work("shared", ours, [[edit]]), Work("MLflow shared", theirs, [versions])]


def changing(method: str, path: str, secret: str, body: dict[str, Any]) -> str:
    return request(method, path, secret, "If-Match: *\r\n", json.dumps(body))


def mlflow_works(text: str, fetched: str, port: int) -> list[Work]:
    """Of each verb the one request that does it; `load_prompt` is all four that its client sends."""
    named = f"name={fetched}"
    model = plain("GET", f"/registered-models/get?{named}")
    alias = plain("GET", f"/registered-models/alias?{named}&alias=production")
    version = plain("GET", f"/model-versions/get?{named}&version=2")
    moves = [{"name": "pilot-@who@", "alias": "canary", "version": number} for number in ("1", "2")]
    return [
        Work("MLflow fetch", port, [[alias]]),
        Work("MLflow load_prompt", port, [[model, alias, model, version]]),
        Work(
            "MLflow create", port, [[plain("POST", "/model-versions/create", created(text, "pilot-@who@"))]]
        ),
        Work(
            "MLflow move",
            port,
            [[plain("POST", "/registered-models/alias", move)] for move in moves],
        ),
    ]


def created(text: str, name: str) -> dict[str, Any]:
    """A version is a prompt by these tags; the source is a word that its client puts there too."""
    tags = {
        "mlflow.prompt.is_prompt": "true",
        "_mlflow_prompt_type": "text",
        "mlflow.prompt.text": EDIT + text,
    }
    told = [{"key": key, "value": value} for key, value in tags.items()]
    return {"name": name, "source": "dummy-source", "tags": told}


def plain(method: str, path: str, body: dict[str, Any] | None = None) -> str:
    """It asks for no key."""
    words = json.dumps(body) if body else ""
    kind = f"Content-Type: application/json\r\nContent-Length: {len(words)}\r\n" if body else ""
    return f"{method} {MLFLOW}{path} HTTP/1.1\r\nHost: {HOST}\r\nAccept: */*\r\n{kind}\r\n{words}"
