"""Sequences of writes: what keys that may neither approve nor override can do with several requests in a row.

The writes come from the table of all API operations (tests/isolation/api_table.py), which fails without a row
and a valid body for an operation, and from `DELIBERATE`: requests that came close to production before. Each
sequence starts from the same rows, is rolled back, and must leave what bots are served as it was.

Sequences with the same beginning share it: a tree of writes, in which every node of depth two and three ends
one sequence. So there is about one request per sequence.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.test import Client

from personas.actors import Actor
from personas.api import rate_limits
from personas.api.responses import encode_json
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.scopes import VERBS_BY_KIND, get_key_verbs
from personas.models import Soul
from personas.records.services import edit_record
from personas.roles import Role
from prompts.models import PRODUCTION, AgentPrompt, Release
from skills.models import AgentContext, AgentSource, RefreshRun, Source
from skills.refresh.runs import claim_run
from skills.refresh.services import refresh_source
from tests.isolation.api_cast import Caller, KeyFactory, rolled_back_as_test
from tests.isolation.api_matrix import OWN, Cell, address, may_call
from tests.isolation.api_table import TABLE
from tests.isolation.cast import HARBOUR, Stage, owner_of
from tests.isolation.scope_matrix import build_pending
from tests.isolation.sequence_writes import UNAPPROVED, Scene, Write
from tests.module_fixtures import commits_heard

FORBIDDEN_VERBS = {"approve", "override"}
# States of the reviewed agent at the beginning: production has the latest version; text waits for an
# approval; text waits, and somebody with the permission to override has lifted the review.
CURRENT, PENDING, LIFTED = STATES = ("current", "pending", "lifted")
# Writes after which the text of production may be a part of what it was: an erasure removes text.
ERASURES = {"POST erasures-list"}


@dataclass
class Result:
    """What the sequences of a run did."""

    sequences: int = 0
    requests: int = 0
    findings: list[str] = field(default_factory=list)
    # Statuses by write, to show that the writes do something.
    statuses: dict[str, Counter[int]] = field(default_factory=dict)

    @property
    def accepted(self) -> int:
        counts = (pair for statuses in self.statuses.values() for pair in statuses.items())
        return sum(count for status, count in counts if 0 < status < 400)

    def count(self, write: Write, status: int) -> None:
        self.requests += 1
        self.statuses.setdefault(str(write), Counter())[status] += 1


# --- what bots are served ------------------------------------------------------------------------------


def read_served_texts(scene: Scene) -> dict[str, tuple[int, str]]:
    """Return status and text of everything that a bot of the reviewed agent is served, by address.

    A text that bots can fetch beside the prompt belongs here.
    """
    agent, channel = scene.stage.key(HARBOUR, "agents"), scene.stage.key(HARBOUR, "channels")
    skill = scene.stage.key(HARBOUR, "skills")
    prompt = f"agents/{agent}/channels/{channel}"
    paths = [f"{prompt}/prompt.md", f"{prompt}/skills", f"{prompt}/skills/{skill}/SKILL.md"]
    texts = {}
    for path in paths:
        answer = request(scene.bot, "GET", f"/api/v1/{path}")
        texts[path] = answer.status_code, format_served(answer) if answer.status_code == 200 else ""
    return texts


def format_served(answer: Any) -> str:
    """Return the text, or one line per skill of a list: number and digest of the version are no text."""
    if answer["Content-Type"] != "application/json":
        return str(answer.content.decode())
    return "\n".join(json.dumps(skill, sort_keys=True) for skill in answer.json()["items"])


def find_changes(scene: Scene, steps: Sequence["Step"]) -> list[str]:
    """Return what is served differently from the beginning, although nobody approved it.

    An agent that is archived, or has left the channel, serves nothing. An erasure removes text. A refused
    write leaves nothing (R14), so that its effect is not fetched again.
    """
    findings = []
    if scene.policy == "reviewed" and scene.agent.release_policy != "reviewed":
        findings.append("the review of the agent was lifted")
    if steps[-1].status >= 400 and len(steps) > 1:
        return findings
    is_erased = any(str(step.write.endpoint) in ERASURES for step in steps)
    for path, (status, text) in read_served_texts(scene).items():
        before = scene.served[path][1]
        new = list_new_lines(before, text)
        if status >= 500:
            findings.append(f"{path} answered {status}")
        elif status == 200 and text != before and (new or not is_erased):
            findings.append(f"{path} changed: {new[:2]}")
    return findings


def list_new_lines(before: str, after: str) -> list[str]:
    return sorted(set(after.splitlines()) - set(before.splitlines()))


# --- rows and keys -------------------------------------------------------------------------------------


@contextmanager
def reviewed_scene(stage: Stage, state: str) -> Iterator[Scene]:
    """Set up the state, and roll it back at the end."""
    with rolled_back_as_test():
        with commits_heard():
            callers, bot = make_callers(stage)
            scene = Scene(stage, state, callers, bot)
            prepare(scene)
        scene.served, scene.policy = read_served_texts(scene), scene.agent.release_policy
        assert [status for status, _ in scene.served.values()] == [200] * len(scene.served)
        assert not any(UNAPPROVED in text for _, text in scene.served.values())
        yield scene


def prepare(scene: Scene) -> None:
    """Make the seeded agent reviewed, with production at its current text.

    The text that waits for an approval is in several records: three writes cannot take it back.
    """
    stage, by = scene.stage, Actor.person(owner_of(scene.stage, HARBOUR))
    workspace = stage.workspaces[HARBOUR]
    pushed = stage.row(HARBOUR, "sources", "pushed")
    Source.unscoped.filter(pk=pushed.pk).update(approval="automatic")
    context = AgentContext.unscoped.get(agent=scene.agent)
    AgentSource(workspace=workspace, context=context, source=pushed, position=1).save()
    AgentPrompt.unscoped.filter(pk=scene.prompt.pk).update(is_pinned=False)
    edit_record(scene.agent, {"description": "Ready."}, expected=scene.agent.revision, by=by)
    build_pending(workspace)
    edit_record(scene.agent, {"release_policy": "reviewed"}, expected=scene.agent.revision, by=by)
    build_pending(workspace)
    assert scene.find_production() == scene.prompt.latest
    Release.unscoped.filter(workspace=workspace).update(label=PRODUCTION)
    if scene.state != CURRENT:
        soul = Soul.unscoped.get(pk=stage.row(HARBOUR, "souls").pk)
        edit_record(soul, {"text": f"{UNAPPROVED} (soul)."}, expected=soul.revision, by=by)
        pending = {"instructions": f"{UNAPPROVED} (agent).", "working_directory": "/srv/unapproved"}
        edit_record(scene.agent, pending, expected=scene.agent.revision, by=by)
        build_pending(workspace)
        latest = scene.prompt.latest
        assert latest is not None
        assert scene.find_production() != latest
        for item in stage.row(HARBOUR, "releases").items.all():
            item.version, item.digest = latest, latest.digest
            item.save()
    if scene.state == LIFTED:
        lift = {"release_policy": "automatic", "reason": "The reviewer is away."}
        edit_record(scene.agent, lift, expected=scene.agent.revision, by=by)
        build_pending(workspace)


def make_callers(stage: Stage) -> tuple[list[Caller], Caller]:
    """Create keys with all verbs except those that approve and override, and keys with some of them."""
    factory, owner, agents = KeyFactory(stage, {}), owner_of(stage, HARBOUR), [stage.key(HARBOUR, "agents")]
    admin_verbs = [verb for verb in VERBS_BY_KIND[ADMIN] if verb not in FORBIDDEN_VERBS]
    admin = stage.requesters[Role.ADMIN.value].user
    editor = stage.requesters[Role.EDITOR.value].user
    assert admin is not None
    assert editor is not None
    factory.add("owner's key", HARBOUR, owner, Role.OWNER, verbs=admin_verbs)
    factory.add("admin's key", HARBOUR, admin, Role.ADMIN, verbs=admin_verbs)
    factory.add("editor's key", HARBOUR, editor, Role.EDITOR, verbs=admin_verbs)
    factory.add("writing key", HARBOUR, owner, Role.OWNER, verbs=["fetch", "read", "write"])
    factory.add("managing key", HARBOUR, owner, Role.OWNER, verbs=["read", "manage"])
    factory.add("limited key", HARBOUR, owner, Role.OWNER, verbs=admin_verbs, agents=agents)
    bot_verbs: Any = list(VERBS_BY_KIND[BOT])
    factory.add("bot", HARBOUR, owner, "", BOT, verbs=bot_verbs)
    factory.add("limited bot", HARBOUR, owner, "", BOT, verbs=bot_verbs, agents=agents)
    factory.add("fetching bot", HARBOUR, owner, "", BOT, verbs=["fetch"])
    return [*factory.callers.values()], factory.callers["fetching bot"]


# --- requests ------------------------------------------------------------------------------------------


def request(
    caller: Caller, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> Any:
    rate_limits.PROCESS_LIMITER.clear()
    is_text = isinstance(body, str)
    data: Any = b"" if body is None else body.encode() if is_text else encode_json(body)
    return caller.client.generic(
        method,
        path,
        data,
        content_type="text/markdown" if is_text else "application/json",
        headers={"Authorization": f"Bearer {caller.secret}", **(headers or {})},
    )


@dataclass(frozen=True)
class Step:
    """A request that was sent, for the findings."""

    write: Write
    caller: str
    status: int

    def __str__(self) -> str:
        return f"{self.caller}: {self.write} → {self.status}"


def choose_caller(scene: Scene, write: Write, callers: Sequence[Caller], rng: random.Random) -> Caller:
    """Prefer a key that may call the operation: a refusal by its verbs changes nothing."""
    able = [caller for caller in callers if may_call(caller, write.endpoint)]
    return rng.choice(able or list(callers))


def build_request(scene: Scene, write: Write, caller: Caller) -> tuple[str, Any, dict[str, str]]:
    cell, row = Cell(caller, write.endpoint, OWN), TABLE[str(write.endpoint)]
    if write.name == str(write.endpoint):
        body = row.body(scene.stage, HARBOUR) if row.body else None
        return address(scene.stage, cell), body, row.get_precondition(write.endpoint)
    own = {name: value(scene.stage, HARBOUR) for name, value in row.names.items()}
    path = write.endpoint.path({**row.values, **own, **write.values(scene)})
    default = row.body(scene.stage, HARBOUR) if row.body else None
    headers = {"If-Match": "*"} if write.endpoint.operation.is_conditional else {}
    return path, write.body(scene) if write.body else default, headers


def send(scene: Scene, write: Write, caller: Caller) -> tuple[int, list[Caller]]:
    """Send the request and run the jobs it caused. Return the status and the keys that it created.

    The status is 0 if an earlier write removed the row that the request names.
    """
    try:
        path, body, headers = build_request(scene, write, caller)
    except (LookupError, ObjectDoesNotExist):
        return 0, []
    answer = request(caller, write.endpoint.method, path, body, headers)
    if answer.status_code < 400:
        run_jobs(scene)
    if write.endpoint.name not in {"keys-list", "keys-rotate"} or answer.status_code >= 400:
        return answer.status_code, []
    created = answer.json()
    verbs = get_key_verbs(created["scopes"], created["kind"])
    name = f"key created by {caller.name}"
    key = replace(
        caller, name=name, client=Client(), secret=created["secret"], kind=created["kind"], verbs=verbs
    )
    return answer.status_code, [key]


def run_jobs(scene: Scene) -> None:
    """Do what workers would do: read pushed files, and build the prompts that are not built yet."""
    workspace = scene.stage.workspaces[HARBOUR]
    runs = RefreshRun.objects.in_workspace(workspace).filter(status="queued", source__source_kind="pushed")
    for pk in list(runs.values_list("pk", flat=True)):
        if run := claim_run(workspace.pk, pk):
            refresh_source(run)
    build_pending(workspace)


def find_accepting_key(scene: Scene, write: Write) -> Caller | None:
    """Return a key whose request is accepted from the initial state; it is rolled back."""
    for caller in scene.callers:
        if may_call(caller, write.endpoint):
            with rolled_back_as_test(), commits_heard():
                if 0 < send(scene, write, caller)[0] < 400:
                    return caller
    return None


# --- trees of writes -----------------------------------------------------------------------------------

# Returns the writes that follow a history; none ends the sequence.
Followers = Callable[[Sequence[Step]], Sequence[Write]]


@dataclass
class SequenceRunner:
    """Runs trees of writes from one state."""

    scene: Scene
    rng: random.Random
    result: Result

    def run(
        self, followers: Followers, history: tuple[Step, ...] = (), callers: Sequence[Caller] = ()
    ) -> None:
        callers = callers or self.scene.callers
        for write in followers(history):
            with rolled_back_as_test():
                with commits_heard():
                    caller = choose_caller(self.scene, write, callers, self.rng)
                    status, created = send(self.scene, write, caller)
                steps = (*history, Step(write, caller.name, status))
                self.check(steps, created)
                self.run(followers, steps, [*callers, *created])

    def check(self, steps: tuple[Step, ...], created: Sequence[Caller]) -> None:
        self.result.count(steps[-1].write, steps[-1].status)
        self.result.sequences += len(steps) > 1
        findings = find_changes(self.scene, steps)
        if steps[-1].status >= 500:
            findings.append(f"answered {steps[-1].status}")
        findings += [
            f"{key.name} may {sorted(wider)}" for key in created if (wider := key.verbs & FORBIDDEN_VERBS)
        ]
        where = f"{self.scene.state}: {'; '.join(map(str, steps))}"
        self.result.findings += [f"{where}: {finding}" for finding in findings]


def combine(writes: Sequence[Write], depth: int) -> Followers:
    """Every sequence of these writes, up to the depth."""
    return lambda history: writes if len(history) < depth else ()


def draw(
    operations: Sequence[Write], deliberate: Sequence[Write], widths: Sequence[int], rng: random.Random
) -> Followers:
    """Random writes: `widths` are the numbers of first, second and third writes. Half are deliberate.

    A first write that is refused begins no sequence.
    """

    def follow(history: Sequence[Step]) -> Sequence[Write]:
        if len(history) == len(widths) or (len(history) == 1 and history[0].status >= 400):
            return ()
        return [rng.choice(rng.choice((operations, deliberate))) for _ in range(widths[len(history)])]

    return follow
