"""Requests of the peers bench to both servers: fetch a prompt by label, create a version, move a label."""

import json
from dataclasses import dataclass
from typing import Any

from benches.fetch import HOST, build_request

# Edits differ by connection and by counter; the load generator replaces both placeholders.
EDIT = "Edit @counter@ of @who@. "
MLFLOW = "/api/2.0/mlflow"
Turns = list[list[str]]


@dataclass(frozen=True)
class Workload:
    """Operations that a connection performs in turn, and the server's port."""

    name: str
    port: int
    turns: Turns


def build_product_workloads(
    stage: dict[str, str], fetched_agent: str, port: int, baseline: int
) -> list[Workload]:
    agent, soul = "/api/v1/agents/pilot-@who@", "/api/v1/souls/soul-@who@"
    path_and_query = f"/api/v1/agents/{fetched_agent}/channels/web/prompt?label=production"
    edit = build_write_request("PATCH", soul, stage["admin"], {"text": EDIT + stage["soul"]})
    label = f"{agent}/channels/web/labels/canary"
    moves = [build_write_request("PUT", label, stage["admin"], {"version": number}) for number in (1, 2)]
    return [
        Workload("bare view", baseline, [[build_request("GET", "/bare", stage["bot"])]]),
        Workload("fetch", port, [[build_request("GET", path_and_query, stage["bot"])]]),
        Workload("create", port, [[edit]]),
        Workload("move", port, [[move] for move in moves]),
    ]


def build_shared_edit_workloads(
    stage: dict[str, str], text: str, shared_soul_agents: list[str], product: int, peer: int
) -> list[Workload]:
    """Change a sentence shared by several prompts: one edit in the product, one version each in MLflow."""
    edit = build_write_request(
        "PATCH", "/api/v1/souls/soul-crew", stage["admin"], {"text": EDIT + stage["soul"]}
    )
    versions = [
        build_mlflow_request("POST", "/model-versions/create", build_version_body(text, name))
        for name in shared_soul_agents
    ]
    return [Workload("shared", product, [[edit]]), Workload("MLflow shared", peer, [versions])]


def build_write_request(method: str, path: str, secret: str, body: dict[str, Any]) -> str:
    return build_request(method, path, secret, "If-Match: *\r\n", json.dumps(body))


def build_mlflow_workloads(text: str, fetched_agent: str, port: int) -> list[Workload]:
    """Return one request per operation; `load_prompt` is the four requests that MLflow's client sends."""
    name_param = f"name={fetched_agent}"
    model = build_mlflow_request("GET", f"/registered-models/get?{name_param}")
    alias = build_mlflow_request("GET", f"/registered-models/alias?{name_param}&alias=production")
    version = build_mlflow_request("GET", f"/model-versions/get?{name_param}&version=2")
    moves = [{"name": "pilot-@who@", "alias": "canary", "version": number} for number in ("1", "2")]
    return [
        Workload("MLflow fetch", port, [[alias]]),
        Workload("MLflow load_prompt", port, [[model, alias, model, version]]),
        Workload(
            "MLflow create",
            port,
            [
                [
                    build_mlflow_request(
                        "POST", "/model-versions/create", build_version_body(text, "pilot-@who@")
                    )
                ]
            ],
        ),
        Workload(
            "MLflow move",
            port,
            [[build_mlflow_request("POST", "/registered-models/alias", move)] for move in moves],
        ),
    ]


def build_version_body(text: str, name: str) -> dict[str, Any]:
    """Return the body that creates a version; the tags mark it as a prompt, the source is its client's."""
    tags = {
        "mlflow.prompt.is_prompt": "true",
        "_mlflow_prompt_type": "text",
        "mlflow.prompt.text": EDIT + text,
    }
    tag_list = [{"key": key, "value": value} for key, value in tags.items()]
    return {"name": name, "source": "dummy-source", "tags": tag_list}


def build_mlflow_request(method: str, path: str, body: dict[str, Any] | None = None) -> str:
    """Build a request to MLflow, which needs no API key."""
    content = json.dumps(body) if body else ""
    body_headers = f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n" if body else ""
    return f"{method} {MLFLOW}{path} HTTP/1.1\r\nHost: {HOST}\r\nAccept: */*\r\n{body_headers}\r\n{content}"
