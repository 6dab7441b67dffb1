"""What bot keys read: every operation that is open to them, called where all text has a canary.

Records were edited after the release, so that each text exists as released and as a draft. A bot may get
the released text only from operations that serve it, each with one ledger row whose replay is the
same. All other operations return names, numbers, states, digests and dates, and what the bot wrote itself.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from personas.actors import Actor
from personas.records.services import edit_record
from prompts.models import LedgerEntry, PromptVersion
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.settings.services import put_settings
from tests.isolation.api_cast import Caller, rolled_back_as_test
from tests.isolation.api_matrix import OWN, Cell, address, may_call
from tests.isolation.api_probe import call
from tests.isolation.api_table import TABLE
from tests.isolation.api_walk import ApiEndpoint
from tests.isolation.canaries import SHAPE
from tests.isolation.cast import HARBOUR, KINDS, Stage, owner_of
from tests.isolation.matrix import Outcome
from tests.isolation.probe import Answer, response_texts

BOTS = ("bot", "narrow bot", "reading bot", "fetching bot", "bot on channels", "bot of labels")
# Operations that serve text of a version, each with a ledger row, and those that return no text.
SERVED, NO_TEXT = "served", "no text"
EXPECTED: dict[str, str] = {
    "GET prompt": SERVED,
    "GET prompt-text": SERVED,
    "POST render": SERVED,
    "POST batch-get": SERVED,
    "GET prompt-skill": SERVED,
    "GET prompt-skill-file": SERVED,
    "GET agent-skills-one": SERVED,
    **dict.fromkeys(
        (
            "GET me",
            "GET prompt-skills",
            "GET workspace-one",
            "GET memories-list",
            "GET memories-one",
            "POST memories-list",
            "GET tasks-list",
            "GET tasks-one",
            "POST tasks-list",
            "POST tasks-tick",
            "POST responsibilities-remove",
            "GET sources-runs",
            "GET sources-run",
            "GET sources-files",
            "POST sources-files-push",
            "PUT sources-file",
            "DELETE sources-file",
            "GET prompts-list",
            "GET versions-list",
            "GET versions-number",
            "GET versions-one",
            "GET ledger-list",
            "GET ledger-outdated",
            "GET ledger-one",
            "GET bots-list",
            "POST prompts-report",
            "GET reports-list",
            "GET labels-list",
            "GET prompt-labels-list",
            "GET labels-one",
        ),
        NO_TEXT,
    ),
}
# The served prompts in a response, in the order of their ledger rows.
PROMPTS: dict[str, Callable[[Any], list[Any]]] = {
    "GET prompt": lambda response: [response.json()],
    "GET prompt-text": lambda response: [{"text": response.content.decode()}],
    "POST render": lambda response: [response.json()],
    "POST batch-get": lambda response: [
        result["prompt"] for result in response.json()["results"] if result["status"] == "served"
    ],
    "GET prompt-skill-file": lambda response: [{"skill": response.content.decode()}],
    **dict.fromkeys(
        ("GET prompt-skill", "GET agent-skills-one"), lambda response: [{"body": response.json()["body"]}]
    ),
}
# Fields with names and other facts that are no text of prompts: bots may get them.
NAMES = {
    *("Workspace.name", "Workspace.slug", "ApiKey.name", "Agent.slug", "Channel.slug", "Source.slug"),
    *("PromptLabel.name", "LabelRule.name", "Release.label", "LedgerEntry.label", "Skill.name"),
    "LedgerEntry.skill",
    *("PushedFile.path", "RefreshRun.cause", "RefreshRun.actor_label", "RefreshRun.error"),
    *("RefreshRun.refusals", "RefreshRun.missing_paths"),
}
DRAFT = "draft of "


@dataclass
class BotStage:
    """The seeded data with a draft of each text, and what the bots wrote themselves."""

    stage: Stage
    callers: dict[str, Caller]
    # The text that production serves.
    released: str = ""
    # Requests beside those of the isolation table: what a bot finds by the ids of its own rows.
    requests: dict[str, list[tuple[str, Any]]] = field(default_factory=dict)


# --- test data -----------------------------------------------------------------------------------------


def build_bot_stage(stage: Stage, callers: dict[str, Caller]) -> BotStage:
    """Write drafts of all records and a version with them; production keeps its version.

    The bot writes a memory, a task and a report and fetches a prompt, and a person edits the memory and task.
    """
    workspace, agent = stage.workspaces[HARBOUR], stage.row(HARBOUR, "agents")
    bot_stage = BotStage(stage, callers)
    write_own_rows(bot_stage)
    by = Actor.person(owner_of(stage, HARBOUR))
    agent.refresh_from_db()
    edit_record(agent, {"release_policy": "reviewed"}, expected=agent.revision, by=by)
    for kind in KINDS:
        edit_as_draft(stage, stage.row(HARBOUR, kind), by)
    put_settings(
        workspace, {"mission": draft_word(stage, "PromptSettings.mission")}, agent=agent, expected=0, by=by
    )
    rebuild_agents(workspace, [agent.pk])
    newest = PromptVersion.objects.in_workspace(workspace).order_by("-pk")[0]
    bot_stage.requests["GET versions-one"] = [(f"/api/v1/prompt-versions/{newest.digest}", None)]
    add_latest_requests(bot_stage, newest.number)
    return bot_stage


def add_latest_requests(bot_stage: BotStage, number: int) -> None:
    """Add requests for the newest version, which is not released: by its label, and also by its number."""
    agent, channel = bot_stage.stage.key(HARBOUR, "agents"), bot_stage.stage.key(HARBOUR, "channels")
    skill = bot_stage.stage.key(HARBOUR, "skills")
    base, requests = f"/api/v1/agents/{agent}/channels/{channel}", bot_stage.requests
    for query in ("label=latest", f"label=latest&version={number}"):
        for name, path in (
            ("GET prompt", f"{base}/prompt"),
            ("GET prompt-text", f"{base}/prompt.md"),
            ("GET prompt-skill", f"{base}/skills/{skill}"),
            ("GET prompt-skill-file", f"{base}/skills/{skill}/SKILL.md"),
        ):
            requests[name] = [*requests.get(name, []), (f"{path}?{query}", None)]
    requests["POST render"].append((f"{base}/prompt:render", {"label": "latest"}))
    prompts = [{"agent": agent, "channel": channel, "label": "latest"}]
    requests["POST batch-get"] = [("/api/v1/prompts:batchGet", {"prompts": prompts})]


def draft_word(stage: Stage, place: str) -> str:
    return stage.canaries.word(HARBOUR, f"{DRAFT}{place}")


def edit_as_draft(stage: Stage, record: Any, by: Actor) -> None:
    """Change every text of the record to a canary that is marked as a draft."""
    record = type(record).objects.in_workspace(record.workspace_id).get(pk=record.pk)
    values = stage.canaries.values(HARBOUR, type(record))
    changed = {name: value for name, value in values.items() if name in record.content}
    if record.kind == "task":
        steps = [{"title": draft_word(stage, "TaskStep.title"), "is_done": False}]
        changed["steps"] = steps
    for word in SHAPE.findall(json.dumps(list(changed.values()))):
        if not stage.canaries.places[word].startswith(DRAFT):
            stage.canaries.places[word] = DRAFT + stage.canaries.places[word]
    edit_record(record, changed, expected=record.revision, by=by)


def write_own_rows(bot_stage: BotStage) -> None:
    """Let the bot write what it may write, and a person change it."""
    stage, bot = bot_stage.stage, bot_stage.callers["bot"]
    agent, channel = stage.key(HARBOUR, "agents"), stage.key(HARBOUR, "channels")
    prompt = f"/api/v1/agents/{agent}/channels/{channel}/prompt"
    memory = post(bot, "/api/v1/memories", {"text": "Own memory.", "agent": agent})["id"]
    steps = [{"title": "Own step"}]
    task = post(bot, "/api/v1/tasks", {"title": "Own task", "agent": agent, "steps": steps})["number"]
    served = fetch(bot, prompt)
    post(bot, "/api/v1/prompts:report", {"agent": agent, "channel": channel, "digest": served["digest"]})
    ledger = LedgerEntry.objects.in_workspace(stage.workspaces[HARBOUR]).order_by("-pk")[0]
    by = Actor.person(owner_of(stage, HARBOUR))
    for kind, key in (("memories", {"pk": memory}), ("tasks", {"number": task})):
        edit_as_draft(stage, KINDS[kind][0].objects.in_workspace(stage.workspaces[HARBOUR]).get(**key), by)
    bot_stage.released = served["text"]
    bot_stage.requests = {
        "GET memories-one": [(f"/api/v1/memories/{memory}", None)],
        "GET memories-list": [("/api/v1/memories?fields=text,source,author", None)],
        "GET tasks-one": [
            (f"/api/v1/tasks/{task}", None),
            (f"/api/v1/tasks/{task}?fields=steps,title", None),
        ],
        "POST tasks-tick": [(f"/api/v1/tasks/{task}/steps/0:complete", {"is_done": True})],
        "GET ledger-one": [(f"/api/v1/ledger/{ledger.pk}", None)],
        "GET versions-number": [
            (f"/api/v1/agents/{agent}/channels/{channel}/versions/{number}", None) for number in (1, 3, 4)
        ],
        "POST render": [(f"{prompt}:render", {"task": int(stage.key(HARBOUR, "tasks"))})],
    }


def fetch(caller: Caller, path: str) -> Any:
    answer = call(caller, "GET", path)
    assert answer.status == 200, answer.response.content
    return answer.response.json()


def post(caller: Caller, path: str, body: Any) -> Any:
    answer = call(caller, "POST", path, body)
    assert answer.status == 201, answer.response.content
    return answer.response.json()


# --- requests ------------------------------------------------------------------------------------------


def find_expectation_gaps(endpoints: Iterable[ApiEndpoint]) -> list[str]:
    """Find operations that are open to bots without an expectation, and expectations without an operation."""
    names = {str(one) for one in endpoints if one.operation.bots or one.operation.is_for_all_keys}
    known = {*EXPECTED}
    return [
        *(f"{name} is open to bots: add it to EXPECTED" for name in sorted(names - known)),
        *(f"{name} is expected and not open to bots" for name in sorted(known - names)),
    ]


def run_bot_reads(bot_stage: BotStage, endpoints: Iterable[ApiEndpoint], names: Iterable[str]) -> Outcome:
    outcome, callers = Outcome(), [bot_stage.callers[name] for name in names]
    for endpoint in endpoints:
        if str(endpoint) not in EXPECTED:
            continue
        for caller in callers:
            if may_call(caller, endpoint):
                for path, body in list_requests(bot_stage, caller, endpoint):
                    outcome.cells += 1
                    with rolled_back_as_test():
                        findings = check_read(bot_stage, caller, endpoint, path, body)
                    outcome.findings += [f"{caller.name} · {endpoint} · {path}: {one}" for one in findings]
    return outcome


def list_requests(bot_stage: BotStage, caller: Caller, endpoint: ApiEndpoint) -> Iterator[tuple[str, Any]]:
    row = TABLE[str(endpoint)]
    path = address(bot_stage.stage, Cell(caller, endpoint, OWN))
    yield path, row.body(bot_stage.stage, HARBOUR) if row.body else None
    if caller.name == "bot":
        yield from bot_stage.requests.get(str(endpoint), [])


def check_read(bot_stage: BotStage, caller: Caller, endpoint: ApiEndpoint, path: str, body: Any) -> list[str]:
    rows = LedgerEntry.objects.in_workspace(bot_stage.stage.workspaces[HARBOUR]).order_by("pk")
    before = list(rows.values_list("pk", flat=True))
    answer = call(caller, endpoint.method, path, body, TABLE[str(endpoint)].get_precondition(endpoint))
    entries = list(rows.exclude(pk__in=before))
    prompts = (
        PROMPTS[str(endpoint)](answer.response) if str(endpoint) in PROMPTS and answer.status == 200 else []
    )
    findings, recorded = find_unrecorded_prompts(bot_stage, prompts, entries)
    # A call names its task, whose text is recorded with the call.
    if "task" not in (body or {}):
        findings += ["served another text than the released one"] * any(
            prompt["text"] != bot_stage.released for prompt in prompts if "text" in prompt
        )
    return findings + find_texts(bot_stage, answer, f"{path} {body} {recorded}")


def find_unrecorded_prompts(
    bot_stage: BotStage, prompts: list[Any], entries: list[LedgerEntry]
) -> tuple[list[str], str]:
    """Compare prompts with the replays of the new ledger rows. Return findings and what is recorded."""
    if len(prompts) != len(entries):
        return [f"served {len(prompts)} prompts and wrote {len(entries)} ledger rows"], ""
    findings, recorded = [], []
    for prompt, entry in zip(prompts, entries, strict=True):
        replay = fetch(bot_stage.callers["owner"], f"/api/v1/ledger/{entry.pk}/replay")
        findings += [
            f"the {name} in the replay of ledger row {entry.pk} are not what was served"
            for name in ("text", "tools")
            if name in prompt and prompt[name] != replay[name]
        ]
        if entry.skill is not None:
            findings += find_skill_differences(prompt, replay["text"], entry)
        recorded += [replay["text"], json.dumps(replay["tools"])]
    return findings, " ".join(recorded)


def find_skill_differences(served: dict[str, str], file: str, entry: LedgerEntry) -> list[str]:
    """Compare what was served of a skill with the replayed file: all of it, or its instructions."""
    is_same = (
        served["skill"] == file if "skill" in served else file.rstrip().endswith(served["body"].rstrip())
    )
    return [] if is_same else [f"the replay of ledger row {entry.pk} is not the skill that was served"]


def find_texts(bot_stage: BotStage, answer: Answer, allowed: str) -> list[str]:
    """Find canaries of text in status, headers and body, except for names and what is `allowed`."""
    canaries = bot_stage.stage.canaries
    words = set(SHAPE.findall("\n".join(response_texts(answer.response)))) - set(SHAPE.findall(allowed))
    return sorted(f"returned {canaries.places[word]}" for word in words if canaries.places[word] not in NAMES)
