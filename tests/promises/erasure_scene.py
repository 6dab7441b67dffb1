"""Serves a secret, erases it, and looks for what is left of it; one step per process.

Run as `python -m tests.promises.erasure_scene serve|erase|search FOLDER FAULT COPIES`; the environment names
the database. COPIES is the number of records with the secret. Each step prints its facts as JSON.
"""

import json
import os
import sys
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # Django first
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402

from core.db.workspace_scope import all_workspaces  # noqa: E402
from personas.actors import Actor  # noqa: E402
from personas.api_keys.format import ADMIN, BOT  # noqa: E402
from personas.api_keys.services import create_key  # noqa: E402
from personas.models import Agent, Memory, UserProfile, Workspace  # noqa: E402
from personas.records.services import edit_record  # noqa: E402
from project.backup.create import create_backup  # noqa: E402
from project.journal.services import record_endings  # noqa: E402
from prompts.evidence.integrity.checkpoint_signer import sign_checkpoint  # noqa: E402
from prompts.evidence.integrity.verify import verify_workspace  # noqa: E402
from prompts.evidence.ledger.blocks import seal_ledger  # noqa: E402
from prompts.evidence.replay.evidence import build_evidence, run_evidence_checks  # noqa: E402
from prompts.evidence.replay.services import replay_entry  # noqa: E402
from prompts.models import AgentPrompt, LedgerEntry, PromptVersion  # noqa: E402
from prompts.publishing.builds.services import rebuild_agents  # noqa: E402
from prompts.publishing.versions.selectors import get_version_text  # noqa: E402
from tests.factories import (  # noqa: E402
    BY,
    make_agent,
    make_channel,
    make_memory,
    make_profile,
    make_user,
    make_workspace,
)
from tests.prompts.evidence.erasure.guesses import DIGEST, SALT, list_stored_texts, read_database  # noqa: E402  # noqa: E402

CODE = "823614"
CANARY, NAME = "Penhaligon keeps the code", "Rosamund Penhaligon"
SECRET = f"Mrs {CANARY} {CODE} on a card."
PROMPT = "/api/v1/agents/{}/channels/deck/prompt"
GUESSES = 1_000_000
# All codes are tried in the shortest texts, which are the easiest to guess, and these around the right one in
# the others.
FULLY_GUESSED, NEAR_GUESSES = 2, 5_000
# The guards to take away by fault: module, name, and what replaces it.
PLANTS: dict[str, list[tuple[str, str, Any]]] = {
    "plain-digests": [("personas.contents.models", "generate_salt", lambda: "")],
    "call-data": [("prompts.evidence.erasure.services", "erase_call_data_containing", lambda *_: 0)],
    # The former behaviour: a version stays readable while another record has the same text.
    "shared-content": [
        ("prompts.serving.cache", "find_tombstones", lambda *_: {}),
        ("prompts.publishing.versions.selectors", "find_tombstones", lambda *_: {}),
    ],
    "immutable": [
        ("personas.api.etags", "REVALIDATE_CACHE_CONTROL", "private, max-age=31536000, immutable"),
    ],
}


def plant(fault: str) -> None:
    """Take one guard away, in the product's own code."""
    for module, name, value in PLANTS.get(fault, ()):
        setattr(import_module(module), name, value)


# --- serve ---------------------------------------------------------------------------------------------


def add_copies(workspace: Workspace, pilot: Agent, copies: int) -> list[Memory | UserProfile]:
    """Put the secret into further records: memories of both agents, and the profile of the second agent."""
    if copies < 2:
        return []
    profile = make_profile(workspace, "Mate", notes=SECRET) if copies > 4 else None
    deck = AgentPrompt.objects.in_workspace(workspace).get(agent=pilot).channel
    mate = make_agent(workspace, "mate", channels=[deck], user_profile=profile)
    memories = [make_memory(workspace, SECRET, agent=mate)]
    memories += [make_memory(workspace, SECRET, agent=pilot) for _ in range(copies - 2 - bool(profile))]
    rebuild_agents(workspace, [mate.pk, pilot.pk])
    return [*memories, *([profile] if profile else [])]


def serve(folder: Path, copies: int) -> None:
    """Put the secret into records, versions, ledger rows, call data and stored responses."""
    call_command("migrate", verbosity=0, interactive=False)
    call_command("createcachetable", verbosity=0)
    owner = make_user("Canary")
    workspace: Workspace = make_workspace("Canary Bay", owner=owner)
    profile = make_profile(workspace, "Rosamund", display_name=NAME, notes=f"Her {CANARY} {CODE}.")
    values = {"user_profile": profile, "channels": [make_channel(workspace, "deck")]}
    agent = make_agent(workspace, "pilot", **values)
    person = Actor.person(owner)
    bot, admin = (create_key(workspace, kind, {}, by=person, kind=kind)[1] for kind in (BOT, ADMIN))
    memory: Memory = make_memory(workspace, SECRET, agent=agent)
    rebuild_agents(workspace, [agent.pk])
    edit_record(memory, {"text": f"{SECRET} Still."}, expected=memory.revision, by=BY)
    rebuild_agents(workspace, [agent.pk])
    others = add_copies(workspace, agent, copies)
    bodies: list[dict[str, Any]] = [
        {},
        {"append": f"She says: {SECRET}"},
        {"append": f"She says: {SECRET} " + "And be brief. " * 200},
        {"limits": {"total": 200_000}, "append": SECRET},
    ]
    for number, body in enumerate(bodies):
        response = Client(HTTP_HOST="localhost").post(
            "/api/v1/agents/pilot/channels/deck/prompt:render",
            json.dumps(body),
            content_type="application/json",
            HTTP_AUTHORIZATION=f"Bearer {bot}",
            HTTP_IDEMPOTENCY_KEY=f"call-{number}",
        )
        assert response.status_code == 200, response.content[:500]
        assert SECRET.encode() in response.content
    seal_ledger(workspace.pk)
    sign_checkpoint(workspace.pk)
    texts = {get_version_text(row).encode() for row in PromptVersion.objects.in_workspace(workspace)}
    entries = LedgerEntry.objects.in_workspace(workspace)
    texts |= {replay_entry(workspace, entry.pk).text.encode() for entry in entries}
    secrets = [text.decode() for text in texts | list_stored_texts() if CODE.encode() in text]
    facts: dict[str, Any] = {
        "admin": admin,
        "bot": bot,
        "memory": memory.pk,
        "others": [{"kind": one.kind, "record": one.pk} for one in others],
        "texts": secrets,
        "rows": [entry.pk for entry in entries],
    }
    (folder / "facts.json").write_text(json.dumps(facts))
    create_backup(folder / "before")
    print_facts(texts=len(secrets), rows=len(facts["rows"]))


# --- erase ---------------------------------------------------------------------------------------------


def post_erasure(client: Client, kind: str, key: int, **more: Any) -> dict[str, Any]:
    body = {"kind": kind, "record": key, "reason": "Requested", **more}
    response = client.post("/api/v1/erasures", json.dumps(body), content_type="application/json")
    assert response.status_code == 201, response.content[:500]
    result: dict[str, Any] = response.json()
    return result


def erase(folder: Path, copies: int) -> None:
    """Erase the records through the API, and read a version before and after as a cache would.

    The memory is erased first. The versions with it must be refused while other records have the same text.
    """
    facts = json.loads((folder / "facts.json").read_text())
    workspace = Workspace.objects.get(slug="canary-bay")
    client = Client(HTTP_HOST="localhost", HTTP_AUTHORIZATION=f"Bearer {facts['admin']}")
    version = PromptVersion.objects.in_workspace(workspace).order_by("-number")[0]
    path = f"/api/v1/prompt-versions/{version.digest}"
    first = client.get(path)
    rows = PromptVersion.objects.in_workspace(workspace).filter(prompt__agent__slug="pilot")
    numbers = [row.number for row in rows if SECRET in get_version_text(row)]
    others, bot = facts["others"], Client(HTTP_HOST="localhost", HTTP_AUTHORIZATION=f"Bearer {facts['bot']}")
    named = post_erasure(client, "memory", facts["memory"])["also_contains"]
    is_named = [{"kind": one["kind"], "record": one["record"]} for one in named] == others
    fetches = [bot.get(f"{PROMPT.format('pilot')}?version={number}").status_code for number in numbers]
    is_kept = copies < 2 or SECRET in bot.get(PROMPT.format("mate")).content.decode()
    if others:
        post_erasure(client, others[0]["kind"], others[0]["record"], also_erase=others[1:])
    profile = UserProfile.objects.in_workspace(workspace).get(name="Rosamund")
    post_erasure(client, "user_profile", profile.pk)
    again = client.get(path, HTTP_IF_NONE_MATCH=first["ETag"])
    if connection.vendor == "postgresql":
        with all_workspaces(), connection.cursor() as cursor:
            cursor.execute("VACUUM FULL")
    sign_checkpoint(workspace.pk)
    # The backup from before has the text. A restore erases it again, from the journal.
    record_endings()
    (folder / "before").rename(folder.parent / f"{folder.name}-before")
    may_reuse = "no-cache" not in first["Cache-Control"]
    print_facts(
        first=first.status_code,
        again=again.status_code,
        may_reuse=may_reuse,
        refused=sorted(set(fetches)),
        tombstoned=len(fetches),
        is_named=is_named,
        is_kept=is_kept,
    )


# --- search --------------------------------------------------------------------------------------------


def search(folder: Path, copies: int) -> None:
    """Write a backup and evidence, verify the chains, and test guesses against every digest."""
    facts = json.loads((folder / "facts.json").read_text())
    workspace = Workspace.objects.get(slug="canary-bay")
    create_backup(folder / "backup")
    failed = set()
    for key in facts["rows"]:
        bundle = build_evidence(replay_entry(workspace, key))
        (folder / f"evidence-{key}.json").write_text(json.dumps(bundle, ensure_ascii=False))
        failed |= {check.name for check in run_evidence_checks(bundle, None) if check.state == "failed"}
    verdict = verify_workspace(workspace)
    hits, guesses = guess(facts["texts"])
    print_facts(hits=hits, guesses=guesses, failed=sorted(failed), bad=str(verdict.first or ""))


def guess(texts: list[str]) -> tuple[int, int]:
    """Try every code in every text: plain digests of all guesses, salted ones of the right guess."""
    with all_workspaces():
        values = [value for _, value in read_database()]
    digests = {found for value in values for found in DIGEST.findall(value)}
    salts = {found.decode() for value in values for found in SALT.findall(value)}
    stored = {bytes.fromhex(digest.decode()) for digest in digests}
    hits = 0
    guesses = 0
    for place, text in enumerate(sorted(texts, key=len)):
        before, _, after = text.partition(CODE)
        start, end = sha256(before.encode()), after.encode()
        near = range(int(CODE) - NEAR_GUESSES, int(CODE) + NEAR_GUESSES)
        codes = range(GUESSES) if place < FULLY_GUESSED else near
        guesses += len(codes)
        for number in codes:
            attempt = start.copy()
            attempt.update(b"%06d" % number + end)
            hits += attempt.digest() in stored
        plain = sha256(text.encode()).hexdigest()
        hits += sum(
            sha256(f"dramatis:salted:v1\n{salt}\n{plain}".encode()).hexdigest().encode() in digests
            for salt in salts
        )
    return hits, guesses


def print_facts(**facts: Any) -> None:
    sys.stdout.write(f"{json.dumps(facts)}\n")


if __name__ == "__main__":
    step, path, fault, copies = sys.argv[1:]
    plant(fault)
    {"serve": serve, "erase": erase, "search": search}[step](Path(path), int(copies))
