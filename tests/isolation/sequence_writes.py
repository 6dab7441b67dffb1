"""The writes of sequences: every unsafe operation of the API, and requests that came close to production."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from personas.api_keys.format import ADMIN
from personas.api_keys.scopes import VERBS_BY_KIND
from personas.models import Agent
from prompts.models import PRODUCTION, AgentPrompt, PromptLabel, PromptVersion, Release
from tests.isolation.api_cast import Caller
from tests.isolation.api_matrix import WRITES
from tests.isolation.api_table import find_table_gaps
from tests.isolation.api_walk import ApiEndpoint, all_endpoints
from tests.isolation.cast import HARBOUR, Stage

UNAPPROVED = "Text that nobody approved"


@dataclass(frozen=True)
class Write:
    """One request: an operation with a path and a body, which may depend on the rows at that time."""

    name: str
    endpoint: ApiEndpoint
    values: Callable[["Scene"], dict[str, str]] = lambda _: {}
    body: Callable[["Scene"], Any] | None = None

    def __str__(self) -> str:
        return self.name


@dataclass
class Scene:
    """The seeded rows with a reviewed agent, and the keys that write."""

    stage: Stage
    state: str
    callers: list[Caller]
    bot: Caller
    served: dict[str, tuple[int, str]] = field(default_factory=dict)
    policy: str = ""

    @property
    def prompt(self) -> AgentPrompt:
        pk = self.stage.row(HARBOUR, "prompts").pk
        return AgentPrompt.unscoped.select_related("agent", "channel", "latest").get(pk=pk)

    @property
    def agent(self) -> Agent:
        return Agent.unscoped.get(pk=self.stage.row(HARBOUR, "agents").pk)

    def find_last_release(self) -> int:
        rows = Release.unscoped.filter(workspace=self.stage.workspaces[HARBOUR]).order_by("-number")
        return rows.values_list("number", flat=True)[0]

    def find_production(self) -> PromptVersion | None:
        rows = PromptLabel.unscoped.filter(prompt=self.prompt, name=PRODUCTION).select_related("version")
        return next((label.version for label in rows), None)


def list_writes() -> list[Write]:
    """Return every operation with an unsafe method, as the table calls it. Raise if it has no row."""
    endpoints = [endpoint for endpoint in all_endpoints() if endpoint.method in WRITES]
    gaps = find_table_gaps(endpoints)
    missing = [gap for gap in gaps if not gap.endswith("has a row and no operation")]
    assert not missing, "\n".join(missing)
    return [Write(str(endpoint), endpoint) for endpoint in endpoints]


def list_deliberate_writes() -> list[Write]:
    by_name = {str(write): write.endpoint for write in list_writes()}
    return [Write(f"{name} ({text})", by_name[name], **more) for name, text, more in DELIBERATE]


def constant(value: Any) -> Callable[[Scene], Any]:
    return lambda scene: value


def of_plain_agent(scene: Scene) -> dict[str, str]:
    return {"slug": scene.stage.key(HARBOUR, "agents")}


def of_production(scene: Scene) -> dict[str, str]:
    return {"label": PRODUCTION}


def of_last_release(scene: Scene) -> dict[str, str]:
    return {"number": str(scene.find_last_release())}


def move_to_latest(scene: Scene) -> Any:
    production, latest = scene.find_production(), scene.prompt.latest
    assert latest is not None
    return {"version": latest.number, "expected": production.number if production else None}


def release_to_production(scene: Scene) -> Any:
    prompt = {"agent": scene.stage.key(HARBOUR, "agents"), "channel": scene.stage.key(HARBOUR, "channels")}
    return {"message": "Go", "label": PRODUCTION, "prompts": [prompt]}


def join_channels(scene: Scene) -> Any:
    variants = ("plain", "spare")
    return {"channels": [scene.stage.key(HARBOUR, "channels", variant) for variant in variants]}


def ids_of_agent(scene: Scene) -> Any:
    return {"ids": [scene.stage.row(HARBOUR, "agents").pk]}


LIFT = {"release_policy": "automatic", "reason": "Because."}
# Operations with the rows and bodies that came close to production: name, what is special, and how.
DELIBERATE: list[tuple[str, str, dict[str, Any]]] = [
    ("PATCH agents-one", "lift", {"body": constant(LIFT)}),
    ("POST releases-list", "production", {"body": release_to_production}),
    ("POST releases-publish", "last", {"values": of_last_release}),
    ("PATCH agents-one", "edit", {"body": constant({"instructions": f"{UNAPPROVED} (edit)."})}),
    ("PUT labels-one", "production", {"values": of_production, "body": move_to_latest}),
    ("POST agents-restore-revision", "first", {"values": lambda _: {"revision": "1"}}),
    ("PATCH agents-one", "review", {"body": constant({"release_policy": "reviewed"})}),
    ("PATCH skills-one", "edit", {"body": constant({"body": f"{UNAPPROVED} (skill)."})}),
    ("PATCH souls-one", "edit", {"body": constant({"text": f"{UNAPPROVED} (new soul)."})}),
    ("POST releases-requestAgain", "last", {"values": of_last_release}),
    ("PATCH agents-one", "lift and edit", {"body": constant(LIFT | {"instructions": UNAPPROVED})}),
    ("DELETE agents-one", "the agent", {"values": of_plain_agent}),
    ("POST agents-restore", "the agent", {"values": of_plain_agent}),
    ("POST agents-archive-many", "the agent", {"body": ids_of_agent}),
    ("POST agents-restore-many", "the agent", {"body": ids_of_agent}),
    ("PATCH agents-one", "leave channel", {"body": constant({"channels": []})}),
    ("PATCH agents-one", "join channels", {"body": join_channels}),
    ("POST releases-approve", "last", {"values": of_last_release}),
    (
        "POST releases-override",
        "last",
        {"values": of_last_release, "body": constant({"reason": "Because."})},
    ),
    ("DELETE labels-one", "production", {"values": of_production}),
    ("POST labels-protect", "unprotect", {"body": constant({"is_protected": False})}),
    ("PATCH workspace-one", "default policy", {"body": constant({"default_release_policy": "reviewed"})}),
    (
        "PATCH workspace-one",
        "lifted default policy",
        {"body": constant({"default_release_policy": "automatic", "reason": "Because."})},
    ),
    (
        "POST keys-list",
        "all verbs",
        {
            "body": constant(
                {"name": "Wider", "kind": "admin", "scopes": {"verbs": list(VERBS_BY_KIND[ADMIN])}}
            )
        },
    ),
    ("PUT prompt-settings-prompt", "mission", {"body": constant({"mission": f"{UNAPPROVED} (mission)."})}),
    (
        "PUT sources-file",
        "pushed text",
        {"body": constant({"text": f"{UNAPPROVED} (pushed)."})},
    ),
    ("PATCH sources-one", "automatic", {"body": constant({"approval": "automatic"})}),
]
# The first of them are combined with each other completely.
CORE = 10
