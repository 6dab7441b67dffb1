"""The scene of promise R21: a person changes prompts in every way and with every identity, then approves.

The ways are the writing operations and pages of the isolation tables.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.test import Client

from personas.actors import Actor
from personas.api_keys.format import BOT
from personas.api_keys.services import rotate_key
from personas.models import Agent, User
from personas.records.services import edit_record
from personas.roles import Role
from prompts.models import AgentPrompt, PromptLabel, Release
from prompts.publishing.releases.services import approve_release, request_release, run_release
from skills.agent_context.services import SourceUse, choose_context
from skills.models import RefreshRun, RunStatus, Source
from skills.refresh.runs import claim_run
from skills.refresh.services import refresh_source
from tests.factories import ReviewingClient, join, signed_in
from tests.isolation.api_cast import Caller, KeyFactory, rolled_back_as_test
from tests.isolation.api_matrix import OWN, WRITES, Cell, address, may_call
from tests.isolation.api_probe import call
from tests.isolation.api_table import TABLE, known_endpoints
from tests.isolation.cast import HARBOUR, Requester, Stage, make_person
from tests.isolation.expectations import INSIDE
from tests.isolation.matrix import Cell as PageCell
from tests.isolation.matrix import address as page_address
from tests.isolation.matrix import inside_routes
from tests.isolation.probe import send_request
from tests.isolation.scope_matrix import build_pending

PAGE, ADMIN_KEY, BOT_KEY, ROTATED_KEY = "page", "admin key", "bot key", "rotated bot key"
SEEDS = Actor(label="seeds")
BOT_VERBS = ["fetch", "render", "read", "write", "activate"]


@dataclass
class Person:
    """An owner who changes prompts, with all identities."""

    name: str
    user: User
    browser: Requester
    admin: Caller
    bot: Caller
    rotated: Caller

    def list_identities(self) -> dict[str, Caller | Requester]:
        return {PAGE: self.browser, ADMIN_KEY: self.admin, BOT_KEY: self.bot, ROTATED_KEY: self.rotated}


@dataclass
class Scene:
    """Reviewed agents in production, two owners who change them, and others who request and approve."""

    stage: Stage
    people: dict[str, Person]
    requester: User
    approver: User
    keys: KeyFactory

    def list_latest(self) -> dict[int, int | None]:
        rows = AgentPrompt.objects.in_workspace(self.stage.workspaces[HARBOUR])
        return dict(rows.values_list("pk", "latest_id"))


Way = tuple[str, str, Callable[[], Any]]


def set_scene(stage: Stage) -> Scene:
    """Release the latest versions of all prompts, so that only the changes of a test count."""
    workspace = stage.workspaces[HARBOUR]
    keys = KeyFactory(stage, {})
    people = {}
    for name in ("P", "S"):
        user = make_person(stage, HARBOUR)
        join(workspace, user, Role.OWNER)
        people[name] = build_person(stage, keys, name, user)
    requester, approver = (make_person(stage, HARBOUR) for _ in range(2))
    join(workspace, requester, Role.EDITOR)
    join(workspace, approver, Role.REVIEWER)
    keys.add("approver", HARBOUR, approver, Role.REVIEWER)
    scene = Scene(prepare_records(stage), people, requester, approver, keys)
    release_everything(scene)
    return scene


def build_person(stage: Stage, keys: KeyFactory, name: str, user: User) -> Person:
    """Create a person's keys. A bot key is limited to the agent, so that it can remove responsibilities."""
    client = signed_in(user)
    client.raise_request_exception = False
    browser = Requester(f"owner {name}", client, user, HARBOUR, Role.OWNER)
    agents = [stage.key(HARBOUR, "agents")]
    keys.add(f"admin {name}", HARBOUR, user, Role.OWNER)
    keys.add(f"bot {name}", HARBOUR, user, "", BOT, agents=agents, verbs=BOT_VERBS)
    # Created by someone else: the person gets the secret of its successor.
    other = make_person(stage, HARBOUR)
    key = keys.add(f"rotated {name}", HARBOUR, other, "", BOT, agents=agents, verbs=BOT_VERBS)
    _new, secret = rotate_key(key, ends_at=key.created_at, by=Actor.person(user))
    keys.callers[f"rotated {name}"].secret = secret
    return Person(
        name,
        user,
        browser,
        keys.callers[f"admin {name}"],
        keys.callers[f"bot {name}"],
        keys.callers[f"rotated {name}"],
    )


def prepare_records(stage: Stage) -> Stage:
    """Let the agent use what the examples of the tables change: both sources, with reviewed releases.

    Return the data with the current rows: pages send the revision that they edit.
    """
    workspace = stage.workspaces[HARBOUR]
    agent = Agent.unscoped.get(pk=stage.row(HARBOUR, "agents").pk)
    pushed = Source.unscoped.get(pk=stage.row(HARBOUR, "sources", "pushed").pk)
    edit_record(pushed, {"approval": "automatic"}, expected=pushed.revision, by=SEEDS)
    uses = [SourceUse(stage.row(HARBOUR, "sources")), SourceUse(pushed)]
    choose_context(agent, uses, "plain", working_directory="", expected=agent.revision, by=SEEDS)
    Agent.objects.in_workspace(workspace).update(release_policy="reviewed")
    type(workspace).objects.filter(pk=workspace.pk).update(default_release_policy="reviewed")
    finish_work(stage)
    rows = {**stage.rows}
    rows[HARBOUR, "agents", "plain"] = Agent.unscoped.get(pk=agent.pk)
    rows[HARBOUR, "sources", "plain"] = Source.unscoped.get(pk=stage.row(HARBOUR, "sources").pk)
    return replace(stage, rows=rows)


def finish_work(stage: Stage) -> None:
    """Run what workers do after a request: refreshes and builds."""
    workspace = stage.workspaces[HARBOUR]
    pushed = stage.row(HARBOUR, "sources", "pushed")
    runs = RefreshRun.objects.in_workspace(workspace).filter(status=RunStatus.QUEUED, source=pushed)
    for run in list(runs):
        if claimed := claim_run(workspace.pk, run.pk):
            refresh_source(claimed)
    build_pending(workspace)


def release_everything(scene: Scene) -> None:
    workspace, by = scene.stage.workspaces[HARBOUR], Actor.person(scene.requester)
    for release in Release.objects.in_workspace(workspace).filter(label="production"):
        Release.objects.in_workspace(workspace).filter(pk=release.pk).update(status="withdrawn")
    prompts = AgentPrompt.objects.in_workspace(workspace).filter(latest__isnull=False)
    approver = make_person(scene.stage, HARBOUR)
    release = request_release(workspace, prompts, message="All", by=by)
    run_release(approve_release(release, by=Actor.person(approver)), by=by)
    AgentPrompt.objects.in_workspace(workspace).update(is_pinned=False)


# --- ways to change a prompt ---------------------------------------------------------------------------


def list_ways(scene: Scene, person: Person) -> Iterator[Way]:
    """Yield every writing operation and page for each identity that may use it."""
    stage = scene.stage
    for endpoint in known_endpoints():
        if endpoint.method not in WRITES:
            continue
        for identity, caller in person.list_identities().items():
            if isinstance(caller, Caller) and may_call(caller, endpoint):
                yield str(endpoint), identity, partial(send_operation, stage, caller, endpoint)
    for route in inside_routes():
        page = INSIDE[route.name]
        if page.write is not None:
            yield route.name, PAGE, partial(send_page, stage, person.browser, route, page)


def get_text_values(stage: Stage, name: str) -> dict[str, Any]:
    """Return values that change the text of the prompt, where the examples of the tables do not."""
    channel = stage.row(HARBOUR, "channels")
    if name.startswith(("PUT prompt-settings", "prompt-settings:")):
        return {} if name.endswith("revert") else {"mission": "Keep the harbour safe."}
    values: dict[str, dict[str, Any]] = {
        "PATCH agents-one": {"instructions": "Answer briefly."},
        # Without a channel, the agent has no prompt. The policy stays: to lift a review is an override.
        "PUT agents-one": {
            "instructions": "Answer briefly.",
            "channels": [channel.slug],
            "release_policy": "reviewed",
        },
        "agents:edit": {
            "instructions": "Answer briefly.",
            "channels": [channel.pk],
            "release_policy": "reviewed",
        },
        "PATCH channels-one": {"formatting": "Use short lines."},
        "PATCH user-profiles-one": {"notes": "Likes tea."},
        "user-profiles:edit": {"notes": "Likes tea."},
    }
    return values.get(name, {})


def send_operation(stage: Stage, caller: Caller, endpoint: Any) -> int:
    cell, row = Cell(caller, endpoint, OWN), TABLE[str(endpoint)]
    body = row.body(stage, HARBOUR) if row.body else None
    if more := get_text_values(stage, str(endpoint)):
        body = {**(body or {}), **more}
    answer = call(caller, endpoint.method, address(stage, cell), body, row.get_precondition(endpoint))
    return answer.status


def send_page(stage: Stage, requester: Requester, route: Any, page: Any) -> int:
    path = page_address(stage, PageCell(requester, route, "POST", "own"))
    body = {**page.body(stage, HARBOUR), **get_text_values(stage, route.name)}
    return send_request(requester, "POST", path, body).status


def name_all_ways() -> set[str]:
    names = {str(endpoint) for endpoint in known_endpoints() if endpoint.method in WRITES}
    return names | {route.name for route in inside_routes() if INSIDE[route.name].write is not None}


# --- approvals -----------------------------------------------------------------------------------------


def find_changed_prompts(scene: Scene, before: dict[int, int | None]) -> list[AgentPrompt]:
    """Return the prompts that have another latest version than before, and can be released."""
    workspace = scene.stage.workspaces[HARBOUR]
    changed = [pk for pk, latest in scene.list_latest().items() if latest != before.get(pk)]
    rows = AgentPrompt.objects.in_workspace(workspace).filter(pk__in=changed, latest__isnull=False)
    labels = PromptLabel.objects.in_workspace(workspace).filter(name="production")
    released = dict(labels.values_list("prompt_id", "version_id"))
    return [row for row in rows if row.latest_id != released.get(row.pk)]


def check_approvals(
    scene: Scene, prompts: list[AgentPrompt], authors: set[str], *, is_page: bool
) -> list[str]:
    """Request a release: its authors get 403, the others can approve it. Return what is wrong."""
    workspace = scene.stage.workspaces[HARBOUR]
    release = request_release(workspace, prompts, message="Go", by=Actor.person(scene.requester))
    findings = []
    for person in scene.people.values():
        expected = 403 if person.name in authors else 200
        statuses = {"API": approve_by_key(person.admin, release)}
        if is_page:
            statuses["page"] = approve_on_page(person, release)
            expected_page = 403 if expected == 403 else 302
            if statuses["page"] != expected_page:
                findings.append(f"{person.name} got {statuses['page']} on the page")
        if statuses["API"] != expected:
            findings.append(f"{person.name} got {statuses['API']}, expected {expected}")
    if (status := approve_by_key(scene.keys.callers["approver"], release)) != 200:
        findings.append(f"another member got {status}")
    return findings


def approve_by_key(caller: Caller, release: Release) -> int:
    with rolled_back_as_test():
        return call(caller, "POST", f"/api/v1/releases/{release.number}:approve", {}).status


def approve_on_page(person: Person, release: Release) -> int:
    client: Client = person.browser.client
    assert isinstance(client, ReviewingClient)
    path = f"/w/{release.workspace.slug}/releases/{release.number}/approve/"
    with rolled_back_as_test():
        return int(client.post(path, {}).status_code)
