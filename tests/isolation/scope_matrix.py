"""The matrix of key scopes: every operation, called with keys that are limited by verb, agent, channel, label
and combinations of them, for rows inside and outside of the limits.

A call must return no row outside of the key's limits, and change no prompt, label or record there.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from personas.actors import Actor
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.scopes import VERBS, VERBS_BY_KIND
from personas.memories.services import create_memory
from personas.models import Agent, Channel, Memory, MemoryStatus, Responsibility, Task
from personas.records.services import create_record, edit_record
from personas.roles import Role
from personas.work.services import add_responsibility, create_task
from prompts.models import (
    PRODUCTION,
    AgentPrompt,
    BuildCause,
    LabelMove,
    LedgerEntry,
    PromptLabel,
    PromptSettings,
)
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import move_label
from prompts.publishing.releases.services import request_release
from prompts.publishing.settings.services import put_settings
from skills.models import PushedFile, RefreshRun
from tests.isolation.api_cast import Caller, KeyFactory, rolled_back_as_test
from tests.isolation.api_matrix import WRITES, Cell, address, may_call
from tests.isolation.api_policy import is_for_bots
from tests.isolation.api_probe import call
from tests.isolation.api_table import TABLE
from tests.isolation.api_walk import ApiEndpoint
from tests.isolation.cast import HARBOUR, Stage, owner_of
from tests.isolation.matrix import Outcome
from tests.isolation.probe import Answer, digest

AGENTS, CHANNELS, LABELS = DIMENSIONS = ("agents", "channels", "labels")
LIMITS = [combination for size in (1, 2, 3) for combination in combinations(DIMENSIONS, size)]
INSIDE = "inside"
# Words that only rows outside of a limit contain.
OUTSIDE_WORDS = {
    AGENTS: ("outsideagentname", "outsideagentmemory", "outsideagenttask", "outsideagentduty"),
    CHANNELS: ("outside-channel", "outsidechannelname", "outsidechannelformat", "outsidechannelmission"),
    LABELS: ("outside-label",),
}
# Tables of records that agents share: no limited key changes them.
SHARED_TABLES = {"personas_identity", "personas_soul", "personas_userprofile", "personas_tool"}
SHARED_TABLES |= {"skills_skill", "skills_source", "prompts_labelrule"}
REFUSED = {403, 404, 422}
# Each item of a batch has its own status.
HAS_STATUS_PER_ITEM = {"POST batch-get"}
IsDue = Callable[[ApiEndpoint, int, "LimitedKey", str], bool]


@dataclass
class LimitedKey:
    """A caller with the scopes of its key."""

    caller: Caller
    scopes: dict[str, list[str]]

    @property
    def limits(self) -> tuple[str, ...]:
        return tuple(name for name in DIMENSIONS if name in self.scopes)

    def __str__(self) -> str:
        return self.caller.name


@dataclass
class ScopeStage:
    """The seeded data with rows inside and outside of the limits of each dimension."""

    inside: Stage
    # By dimension: the same data, where the rows that requests name are outside of it.
    outside: dict[str, Stage]
    keys: list[LimitedKey]
    verb_keys: list[Caller]
    shared_before: dict[str, str]


# --- data ----------------------------------------------------------------------------------------------


def set_scope_stage(stage: Stage) -> ScopeStage:
    workspace, by = stage.workspaces[HARBOUR], Actor.person(owner_of(stage, HARBOUR))
    agent, channel = stage.row(HARBOUR, "agents"), stage.row(HARBOUR, "channels")
    outer_channel = create_record(
        Channel,
        workspace,
        {"slug": "outside-channel", "name": "outsidechannelname", "formatting": "outsidechannelformat"},
        by=by,
    )
    values = {"slug": "outside-agent", "name": "outsideagentname", "channels": [channel, outer_channel]}
    outer_agent = create_record(Agent, workspace, values, by=by)
    agent.refresh_from_db()
    edit_record(agent, {"channels": [channel, outer_channel]}, expected=agent.revision, by=by)
    put_settings(
        workspace, {"mission": "outsidechannelmission"}, expected=0, by=by, agent=None, channel=outer_channel
    )
    records = {
        "memories": create_memory(workspace, {"text": "outsideagentmemory", "agent": outer_agent}, by=by),
        "tasks": create_task(
            workspace, {"title": "outsideagenttask", "agent": outer_agent, "steps": [{"title": "One"}]}, by=by
        ),
        "responsibilities": add_responsibility(
            workspace, {"title": "outsideagentduty", "text": "Do it.", "agent": outer_agent}, by=by
        ),
    }
    build_pending(workspace)
    prompts = {
        (row.agent.slug, row.channel.slug): row
        for row in AgentPrompt.objects.in_workspace(workspace).select_related("agent", "channel", "latest")
    }
    for prompt in prompts.values():
        for label in ("inside-label", "outside-label"):
            assert prompt.latest is not None
            move_label(prompt, label, prompt.latest, expected=None, by=by)
    own_prompt = prompts[agent.slug, channel.slug]
    outside: dict[str, dict[str, Any]] = {
        INSIDE: {"prompts": own_prompt},
        AGENTS: {
            "agents": outer_agent,
            **records,
            "prompts": prompts["outside-agent", channel.slug],
        },
        CHANNELS: {"channels": outer_channel, "prompts": prompts[agent.slug, "outside-channel"]},
        LABELS: {"prompts": own_prompt},
    }
    stages = {}
    for dimension, rows in outside.items():
        label = "outside-label-next" if dimension == LABELS else "fresh"
        rows["releases"] = request_release(workspace, [rows["prompts"]], message="Go", by=by, label=label)
        rows["ledger"] = add_ledger_entry(stage, rows["prompts"], label)
        replaced = {(HARBOUR, kind, "plain"): row for kind, row in rows.items()}
        stages[dimension] = replace(stage, rows={**stage.rows, **replaced})
    scopes = {
        AGENTS: [agent.slug],
        CHANNELS: [channel.slug],
        LABELS: sorted({"inside-label", "fresh", *list_seeded_labels(stage)}),
    }
    keys, verb_keys = make_keys(stage, scopes)
    inside = stages.pop(INSIDE)
    return ScopeStage(inside, stages, keys, verb_keys, digest(workspace, SHARED_TABLES))


def list_seeded_labels(stage: Stage) -> set[str]:
    """The labels that the request table names, except production, which is outside."""
    rows = PromptLabel.objects.in_workspace(stage.workspaces[HARBOUR])
    names = {*rows.values_list("name", flat=True), stage.row(HARBOUR, "releases").label}
    return {*names, stage.row(HARBOUR, "ledger").label} - {PRODUCTION, "outside-label"}


def add_ledger_entry(stage: Stage, prompt: AgentPrompt, label: str) -> LedgerEntry:
    entry = LedgerEntry.objects.in_workspace(stage.workspaces[HARBOUR]).get(
        pk=stage.row(HARBOUR, "ledger").pk
    )
    assert prompt.latest is not None
    entry.pk, entry.prompt, entry.version, entry.label = None, prompt, prompt.latest, label
    entry._state.adding = True
    entry.save()
    return entry


def make_keys(stage: Stage, scopes: dict[str, list[str]]) -> tuple[list[LimitedKey], list[Caller]]:
    factory, owner, keys = KeyFactory(stage, {}), owner_of(stage, HARBOUR), []
    for kind in (ADMIN, BOT):
        for limits in LIMITS:
            chosen = {name: scopes[name] for name in limits}
            verbs: Any = {"verbs": list(VERBS_BY_KIND[kind])}
            name = f"{kind} with limited {' and '.join(limits)}"
            role = Role.OWNER if kind == ADMIN else ""
            factory.add(name, HARBOUR, owner, role, kind, **chosen, **verbs)
            keys.append(LimitedKey(factory.callers[name], chosen))
    for verb in VERBS:
        kind = ADMIN if verb in VERBS_BY_KIND[ADMIN] else BOT
        role, listed = (Role.OWNER if kind == ADMIN else ""), [verb]
        listed += ["write"] if verb == "activate" else []
        factory.add(f"{verb} only", HARBOUR, owner, role, kind, verbs=listed)
    return keys, [factory.callers[f"{verb} only"] for verb in VERBS]


def build_pending(workspace: Any) -> None:
    """Build the prompts that a change has marked, as the request does after its commit."""
    causes = BuildCause.objects.in_workspace(workspace).filter(agent__archived_at=None)
    if ids := sorted(set(causes.values_list("agent_id", flat=True))):
        rebuild_agents(workspace.pk, ids)


# --- what must not change ------------------------------------------------------------------------------


def outside_state(stage: Stage, limits: dict[str, list[str]]) -> dict[str, set[Any]]:
    """Return the prompts, labels and records outside of the limits, each with its version or revision."""
    workspace = stage.workspaces[HARBOUR]

    def is_outside(agent: str, channel: str, label: str) -> bool:
        names = {AGENTS: agent, CHANNELS: channel, LABELS: label}
        return any(names[dimension] not in values for dimension, values in limits.items())

    prompts = AgentPrompt.objects.in_workspace(workspace)
    latest: list[Any] = [
        (*row[:2], "latest", *row[2:])
        for row in prompts.values_list(
            "agent__slug", "channel__slug", "latest__number", "is_active", "is_pinned"
        )
    ]
    place = ("prompt__agent__slug", "prompt__channel__slug")
    labels = PromptLabel.objects.in_workspace(workspace).values_list(*place, "name", "version__number")
    moves = LabelMove.objects.in_workspace(workspace).values_list(*place, "label", "sequence")
    rows: list[Any] = [*latest, *labels, *moves]
    return {
        "prompts and labels": {row for row in rows if is_outside(*row[:3])},
        "records": set(list_outside_records(stage, limits)),
    }


def list_outside_records(stage: Stage, limits: dict[str, list[str]]) -> Iterator[Any]:
    """List records with prompts outside of the limits: those of an agent are on all its channels."""
    workspace = stage.workspaces[HARBOUR]
    is_agent_wide = set(limits) == {AGENTS}
    for model, path in (
        (Agent, "slug"),
        (Memory, "agent__slug"),
        (Task, "agent__slug"),
        (Responsibility, "agent__slug"),
    ):
        rows: Any = model.objects.in_workspace(workspace)
        rows = rows.exclude(**{f"{path}__in": limits[AGENTS]}) if is_agent_wide else rows
        if model is Memory:
            # Proposals wait for a person.
            rows = rows.exclude(status=MemoryStatus.PROPOSED)
        yield from ((model.kind, *row) for row in rows.values_list("pk", "revision", "archived_at"))
    channels = Channel.objects.in_workspace(workspace)
    channels = channels.exclude(slug__in=limits[CHANNELS]) if set(limits) == {CHANNELS} else channels
    yield from (("channel", *row) for row in channels.values_list("pk", "revision", "archived_at"))
    settings = PromptSettings.objects.in_workspace(workspace)
    for agent, channel, revision in settings.values_list("agent__slug", "channel__slug", "revision"):
        names = {AGENTS: agent, CHANNELS: channel, LABELS: ""}
        if any(names[dimension] not in values for dimension, values in limits.items()):
            yield "settings", agent, channel, revision
    if not is_agent_wide:
        yield "pushed", PushedFile.objects.in_workspace(workspace).count()
        yield "runs", RefreshRun.objects.in_workspace(workspace).count()


# --- requests ------------------------------------------------------------------------------------------


def run_scopes(scope: ScopeStage, endpoints: Iterable[ApiEndpoint], is_due: IsDue) -> Outcome:
    outcome = Outcome()
    before = {str(key): outside_state(scope.inside, key.scopes) for key in scope.keys}
    for number, endpoint in enumerate(endpoints):
        for key in scope.keys:
            if not may_call(key.caller, endpoint):
                continue
            for target in (INSIDE, *key.limits):
                if not is_due(endpoint, number, key, target):
                    continue
                is_outside = target != INSIDE and names_outside(scope, key, endpoint, target)
                if target == INSIDE or is_outside or not is_due(endpoint, number, key, INSIDE):
                    outcome.cells += 1
                    with rolled_back_as_test():
                        findings = check_scope(scope, key, endpoint, target, before[str(key)])
                    outcome.findings += [f"{key} · {endpoint} · {target}: {text}" for text in findings]
    return outcome


def check_scope(
    scope: ScopeStage, key: LimitedKey, endpoint: ApiEndpoint, target: str, before: dict[str, set[Any]]
) -> list[str]:
    path, body = build_target_request(scope, key, endpoint, target)
    is_outside = target != INSIDE and names_outside(scope, key, endpoint, target)
    answer = send(key.caller, endpoint, path, body)
    findings = []
    if is_outside and answer.status not in REFUSED and str(endpoint) not in HAS_STATUS_PER_ITEM:
        findings.append(f"answered {answer.status} for {path}")
    if answer.status >= 500:
        findings.append(f"answered {answer.status}: {answer.visible_text[:300]!r}")
    text, sent = answer.visible_text, f"{path} {body}"
    findings += [
        f"returned a row outside of its {dimension} ({word})"
        for dimension in key.limits
        for word in OUTSIDE_WORDS[dimension]
        if word in text and word not in sent
    ]
    if endpoint.method in WRITES and answer.wrote_tenant_rows:
        findings += find_changes(scope, key, answer, before)
    return findings


def find_changes(
    scope: ScopeStage, key: LimitedKey, answer: Answer, before: dict[str, set[Any]]
) -> list[str]:
    workspace = scope.inside.workspaces[HARBOUR]
    build_pending(workspace)
    after = outside_state(scope.inside, key.scopes)
    findings = [
        f"changed {name} outside of its limits: {sorted(map(str, after[name] ^ before[name]))[:3]}"
        for name in before
        if after[name] != before[name]
    ]
    tables = answer.written_tables & SHARED_TABLES
    changed = [
        name for name, now in digest(workspace, tables).items() if tables and now != scope.shared_before[name]
    ]
    return findings + [f"changed {name}, which agents share" for name in changed]


def names_outside(scope: ScopeStage, key: LimitedKey, endpoint: ApiEndpoint, target: str) -> bool:
    """Tell whether the request names a row outside; otherwise it is the same as the one inside."""
    inside = build_request(scope.inside, key.caller, endpoint)
    return build_target_request(scope, key, endpoint, target) != inside


def build_target_request(
    scope: ScopeStage, key: LimitedKey, endpoint: ApiEndpoint, target: str
) -> tuple[str, Any]:
    path, body = build_request(scope.outside.get(target, scope.inside), key.caller, endpoint)
    return name_other_label(path, body) if target == LABELS else (path, body)


def build_request(stage: Stage, caller: Caller, endpoint: ApiEndpoint) -> tuple[str, Any]:
    cell = Cell(caller, endpoint, "own")
    return address(stage, cell), cell.row.body(stage, HARBOUR) if cell.row.body else None


def name_other_label(path: str, body: Any) -> tuple[str, Any]:
    path = re.sub(r"(/channels/[^/]+/labels/)[^/:]+", r"\1outside-label", path)
    if isinstance(body, dict) and "label" in body and "prompts" in body:
        body = body | {"label": "outside-label"}
    if path.endswith(("/prompt", "/prompt.md")):
        path += "?label=outside-label"
    if path.endswith("prompt:render"):
        body = (body or {}) | {"label": "outside-label"}
    return path, body


def send(caller: Caller, endpoint: ApiEndpoint, path: str, body: Any) -> Answer:
    headers = TABLE[str(endpoint)].get_precondition(endpoint)
    return call(caller, endpoint.method, path, body, headers)


def run_verbs(
    scope: ScopeStage, endpoints: Iterable[ApiEndpoint], is_due: Callable[[int, int], bool]
) -> Outcome:
    """Call every operation with keys that have one verb: 403 and no change, unless the verb opens it."""
    outcome = Outcome()
    for number, endpoint in enumerate(endpoints):
        for place, caller in enumerate(scope.verb_keys):
            if may_call(caller, endpoint) or not is_due(number, place):
                continue
            outcome.cells += 1
            with rolled_back_as_test():
                answer = send(caller, endpoint, *build_request(scope.inside, caller, endpoint))
                if answer.status != 403:
                    outcome.findings.append(f"{caller.name} · {endpoint}: answered {answer.status}")
                if answer.wrote_tenant_rows:
                    outcome.findings.append(f"{caller.name} · {endpoint}: wrote {answer.written_tables}")
    return outcome


# --- selection of cells --------------------------------------------------------------------------------


def every_scope(endpoint: ApiEndpoint, number: int, key: LimitedKey, target: str) -> bool:
    return True


def one_scope_in_turn(turn: int) -> IsDue:
    """Select for each operation one limited admin key and one limited bot key, which rotate."""

    def is_due(endpoint: ApiEndpoint, number: int, key: LimitedKey, target: str) -> bool:
        place = LIMITS.index(key.limits)
        if key.caller.is_bot:
            return is_for_bots(endpoint) and (number + turn) % len(LIMITS) == place
        return (number + turn + 3) % len(LIMITS) == place

    return is_due
