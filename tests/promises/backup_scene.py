"""Builds an installation with a long history and backs it up under load; each step is a process.

Run as `python -m tests.promises.backup_scene build|take|end|restore|check FOLDER`; the environment names the
database.
"""

import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from django.apps import apps  # noqa: E402  # Django first
from django.core.management import call_command  # noqa: E402
from django.db import OperationalError, connection, connections  # noqa: E402

from benches.history import extend_history  # noqa: E402
from personas.actors import Actor  # noqa: E402
from personas.agents.services import create_named_record  # noqa: E402
from personas.api_keys.services import create_key, revoke_key  # noqa: E402
from personas.members.services import remove_member  # noqa: E402
from personas.memories.services import create_memory  # noqa: E402
from personas.models import Agent, ApiKey, Channel, Membership, Memory, Soul, User, Workspace  # noqa: E402
from personas.records.services import create_record, edit_record  # noqa: E402
from personas.workspaces.services import create_workspace  # noqa: E402
from project.backup import create as backup_create  # noqa: E402
from project.backup import endings as backup_endings  # noqa: E402
from project.backup.snapshot import SNAPSHOT_SETTINGS  # noqa: E402
from project.journal.apply import AppliedEndings  # noqa: E402
from project.journal.services import record_endings  # noqa: E402
from prompts.evidence.erasure.services import erase_record  # noqa: E402
from prompts.evidence.integrity.checkpoint_signer import sign_checkpoint  # noqa: E402
from prompts.evidence.ledger.blocks import seal_ledger  # noqa: E402
from prompts.models import AgentPrompt, LedgerEntry, PromptVersion  # noqa: E402
from prompts.publishing.builds.services import rebuild_agents  # noqa: E402
from prompts.publishing.versions.version_contents import load_version_contents  # noqa: E402
from prompts.serving.cache import ServingCache  # noqa: E402
from prompts.serving.errors import InvalidKey, ServingUnavailable  # noqa: E402
from prompts.serving.request import EMPTY_SLOTS, CallContext, KeyClient, PromptRequest  # noqa: E402
from prompts.serving.services import serve_prompt  # noqa: E402

BY = Actor("scene")
AGENTS, SAMPLE = 20, 200
# The agent with a memory that is erased after the backup, and a part of that memory.
REMEMBERING_AGENT, SECRET = "a2", "under the third flowerpot"
# Fetches before the backup starts.
WARM_UP = 20


def build(folder: Path, versions: int, rows: int) -> None:
    call_command("migrate", verbosity=0, interactive=False)
    call_command("createcachetable", verbosity=0)
    owner = User.objects.create_user("alice@example.com", None, name="Alice")
    workspace = create_workspace("Harbour", "harbour", owner=owner)
    channel = Channel.objects.in_workspace(workspace).order_by("pk")[0]
    for number in range(AGENTS):
        soul_values = {"name": f"Soul {number}", "text": f"Be brave, {number}. " * 200}
        soul = create_named_record(Soul, workspace, soul_values, by=BY)
        values = {"slug": f"a{number}", "name": f"Agent {number}", "soul": soul, "channels": [channel]}
        create_record(Agent, workspace, values, by=BY)
    Membership(workspace=workspace, user=User.objects.create_user("bob@example.com"), role="editor").save()
    remembering = Agent.objects.in_workspace(workspace).get(slug=REMEMBERING_AGENT)
    create_memory(workspace, {"text": f"Her spare key is {SECRET}.", "agent": remembering}, by=BY)
    rebuild_agents(workspace, Agent.objects.in_workspace(workspace).values_list("pk", flat=True))
    extend_history(workspace, AgentPrompt.objects.in_workspace(workspace).order_by("pk")[0], rows, versions)
    sign_checkpoint(workspace.pk)
    gone, revoked = create_key(workspace, "Gone", {}, by=BY)
    revoke_key(gone, by=BY)
    _, live = create_key(workspace, "Live", {}, by=BY)
    _, doomed = create_key(workspace, "Doomed", {}, by=BY)
    keys = {"live": live, "revoked": revoked, "doomed": doomed}
    facts = keys | {"channel": channel.slug, "texts": some_texts(workspace)}
    (folder / "facts.json").write_text(json.dumps(facts))
    count = PromptVersion.objects.in_workspace(workspace).count()
    print_facts(versions=count, rows=LedgerEntry.objects.in_workspace(workspace).count())


def some_texts(workspace: Workspace) -> dict[str, str]:
    """Return texts of random versions, which are the same after a restore."""
    rows = PromptVersion.objects.in_workspace(workspace).exclude(prompt__agent__slug=REMEMBERING_AGENT)
    keys = list(rows.values_list("pk", flat=True))
    chosen = secrets.SystemRandom().sample(keys, min(SAMPLE, len(keys)))
    return {str(row.pk): text_of(row) for row in rows.filter(pk__in=chosen)}


def text_of(version: PromptVersion) -> str:
    return "".join(segment.text for segment in load_version_contents(version).segments)


# --- backing up under load -----------------------------------------------------------------------------


class Writers:
    """Load: two bots that fetch, an editor, and a job that seals and signs; one thread each."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts, self.stopping = facts, threading.Event()
        self.done = {"fetches": 0, "put off": 0, "edits": 0, "seals": 0}
        self.workspace = Workspace.objects.get(slug="harbour")
        self.troubles: list[str] = []
        actions = [self.fetch, self.fetch, self.edit, self.seal]
        self.threads = [threading.Thread(target=self.repeat, args=(action,)) for action in actions]

    def repeat(self, action: Callable[[], None]) -> None:
        try:
            while not self.stopping.is_set():
                try:
                    action()
                except OperationalError as error:
                    # SQLite allows one writer at a time and does not queue them: on a busy machine a write
                    # may time out, and the API returns 503 then.
                    if str(error) != "database is locked":
                        raise
                    self.done["put off"] += 1
        except Exception as error:  # noqa: BLE001  # reported at the end
            self.troubles.append(repr(error))
        finally:
            connections.close_all()

    def fetch(self) -> None:
        try:
            fetch(self.facts["live"], f"a{secrets.randbelow(AGENTS)}", self.facts["channel"])
            self.done["fetches"] += 1
        except ServingUnavailable:
            self.done["put off"] += 1

    def edit(self) -> None:
        """Edit the soul of the last agent: its rows are far from the first rows of every table."""
        agent = Agent.objects.in_workspace(self.workspace).select_related("soul").get(slug=f"a{AGENTS - 1}")
        assert agent.soul is not None
        values = {"text": f"Be busy: {secrets.token_hex(8)}. " * 50}
        edit_record(agent.soul, values, expected=agent.soul.revision, by=BY)
        rebuild_agents(self.workspace, [agent.pk])
        self.done["edits"] += 1
        time.sleep(0.05)

    def seal(self) -> None:
        seal_ledger(self.workspace.pk)
        sign_checkpoint(self.workspace.pk)
        self.done["seals"] += 1
        time.sleep(0.2)

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        deadline = time.monotonic() + 30
        while (self.done["fetches"] < WARM_UP or not self.done["edits"]) and time.monotonic() < deadline:
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)


def fetch(secret: str, agent: str, channel: str) -> Any:
    call = CallContext(EMPTY_SLOTS, f"scene-{secrets.token_hex(8)}", ())
    return serve_prompt(
        KeyClient(secret), PromptRequest(agent, channel, "production"), call, cache=ServingCache()
    )


def take(folder: Path, name: str, fault: str = "") -> None:
    facts = json.loads((folder / "facts.json").read_text())
    if fault == "no-snapshot":
        vars(backup_create)["open_snapshot"] = no_snapshot
    with Writers(facts) as writers:
        before, began = dict(writers.done), time.monotonic()
        manifest = backup_create.create_backup(folder / name)
        seconds = time.monotonic() - began
        meanwhile = {what: writers.done[what] - before[what] for what in before}
    print_facts(
        seconds=seconds,
        meanwhile=meanwhile,
        troubles=writers.troubles,
        rows=manifest.rows,
        size=manifest.size,
        form=manifest.database["form"],
    )


@contextmanager
def no_snapshot() -> Iterator[str]:
    """Planted fault: read the tables without a common snapshot."""
    with connection.cursor() as cursor:
        for statement in SNAPSHOT_SETTINGS if connection.vendor == "postgresql" else ():
            cursor.execute(statement.replace("LOCAL ", ""))
    yield ""


# --- after the backup ----------------------------------------------------------------------------------


def end(folder: Path) -> None:
    """Revoke a key, remove a member and erase a memory, once; record it in the journal."""
    workspace = Workspace.objects.get(slug="harbour")
    revoke_key(ApiKey.objects.in_workspace(workspace).get(name="Doomed"), by=BY)
    for member in Membership.objects.in_workspace(workspace).filter(role="editor"):
        remove_member(member, by=BY)
    for memory in Memory.objects.in_workspace(workspace).filter(text__contains=SECRET):
        erase_record(memory, reason="She asked for it.", by=BY)
    print_facts(recorded=record_endings())


def restore(folder: Path, name: str) -> None:
    """Planted fault: restore a backup and do not apply the journal."""
    vars(backup_endings)["apply_endings"] = lambda endings: AppliedEndings()
    call_command("restore", str(folder / name), stdout=sys.stderr)
    print_facts(restored=True)


def check(folder: Path) -> None:
    facts = json.loads((folder / "facts.json").read_text())
    rows = PromptVersion.unscoped.in_bulk([int(key) for key in facts["texts"]])
    same = [key for key, text in facts["texts"].items() if text_of(rows[int(key)]) == text]
    served = fetch(facts["live"], "a1", facts["channel"])
    print_facts(
        same=len(same),
        served=served.status,
        refused=[name for name in ("revoked", "doomed") if is_refused(facts[name], facts["channel"])],
        members=Membership.unscoped.count(),
        secret_in=list_places_of(SECRET, facts),
    )


def is_refused(secret: str, channel: str) -> bool:
    try:
        fetch(secret, "a1", channel)
    except InvalidKey:
        return True
    return False


def list_places_of(text: str, facts: dict[str, Any]) -> list[str]:
    """List where a text is: in the served prompt, in a version, and in every column of every table."""
    response = fetch(facts["live"], REMEMBERING_AGENT, facts["channel"])
    rows = PromptVersion.unscoped.filter(prompt__agent__slug=REMEMBERING_AGENT)
    places = {"served": text in str(vars(response)), "versions": any(text in text_of(row) for row in rows)}
    with connection.cursor() as cursor:
        for model in apps.get_models():
            for field in model._meta.concrete_fields:
                column, kind = connection.ops.quote_name(str(field.column)), field.get_internal_type()
                cast = f"encode({column}, 'escape')" if kind == "BinaryField" else f"CAST({column} AS text)"
                value = cast if connection.vendor == "postgresql" else f"CAST({column} AS text)"
                table = connection.ops.quote_name(model._meta.db_table)
                cursor.execute(f"SELECT 1 FROM {table} WHERE {value} LIKE %s LIMIT 1", [f"%{text}%"])  # noqa: S608
                places[f"{model._meta.db_table}.{field.column}"] = cursor.fetchone() is not None
    return [place for place, has_text in places.items() if has_text]


def print_facts(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    step, place, *more = sys.argv[1:]
    steps: dict[str, Callable[..., None]] = {
        "build": build,
        "take": take,
        "end": end,
        "restore": restore,
        "check": check,
    }
    arguments = [int(argument) for argument in more] if step == "build" else more
    steps[step](Path(place), *arguments)
