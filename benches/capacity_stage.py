"""Fills a PostgreSQL database with workspaces of ordinary size and weighs what each step has added."""

import json
import os
import sys
from collections.abc import Callable

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # Django first
from django.db import connection, transaction  # noqa: E402

from benches.pages_rows import add_memories  # noqa: E402
from benches.source import BODY, WORDS  # noqa: E402
from personas.actors import Actor  # noqa: E402
from personas.agents.services import create_named_record  # noqa: E402
from personas.api_keys.services import create_key  # noqa: E402
from personas.models import Agent, Channel, Soul, Workspace  # noqa: E402
from personas.records.services import edit_record  # noqa: E402
from personas.work.services import add_responsibility  # noqa: E402
from personas.workspaces.services import create_workspace  # noqa: E402
from prompts.builds.services import rebuild_agents  # noqa: E402
from prompts.models import LedgerEntry  # noqa: E402
from prompts.serving import EMPTY_SLOTS, CallContext, KeyClient, PromptRequest, ServingCache, serve_prompt  # noqa: E402
from tests.factories import make_agent, make_user  # noqa: E402

WORKSPACES, AGENTS, CHANNELS, SOULS, MEMORIES = 20, 30, 3, 3, 10
# Of them, those whose prompts are all built a second time.
REWORDED, CALLS = 10, 200_000
BY = Actor("bench")
LEDGER = "prompts_ledgerentry"
# What a new version leaves behind; words that others say as well are kept once.
OF_VERSIONS = ("prompts_promptversion", "prompts_versionpart", "prompts_labelmove", "personas_content")
SIZE = """
    SELECT c.relname,
        coalesce((SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree(c.oid)),
            pg_total_relation_size(c.oid))
    FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
"""
# As many rows like one that a real fetch has left, over all prompts in turn, in the order of time; ids of
# requests and digests are as random as real ones, so that indexes are filled as they would be.
FETCHES = """
    INSERT INTO prompts_ledgerentry (workspace_id, key_id, user_id, reader_label, prompt_id, label,
        version_id, slots, served_digest, size, status, request_id, at, seal)
    SELECT p.workspace_id, k.id, NULL, real.reader_label, p.id, real.label, p.latest_id, real.slots,
        encode(sha256(convert_to('a' || g, 'UTF8')), 'hex'), real.size, real.status, gen_random_uuid()::text,
        now() - make_interval(secs => 0.4 * (%(calls)s - g)),
        encode(sha256(convert_to('b' || g, 'UTF8')), 'hex')
    FROM generate_series(1, %(calls)s) g
    JOIN (SELECT *, row_number() OVER (ORDER BY id) - 1 AS place, count(*) OVER () AS places
          FROM prompts_agentprompt) p ON p.place = (g * 7919::bigint) %% p.places
    JOIN personas_apikey k ON k.workspace_id = p.workspace_id
    CROSS JOIN (SELECT * FROM prompts_ledgerentry ORDER BY id LIMIT 1) real
    ORDER BY g
"""


def main() -> None:
    call_command("migrate", verbosity=0, interactive=False)
    call_command("createcachetable", verbosity=0)
    empty = sum(sizes().values())
    owner = make_user("Alice")
    spaces = [create_workspace(f"Team {at}", f"team-{at}", owner=owner) for at in range(WORKSPACES)]
    secrets = [create_key(workspace, "Bot", {}, by=BY)[1] for workspace in spaces]
    for workspace in spaces:
        cast(workspace)
    records = grown(lambda: list(map(remember, spaces)))
    for workspace in spaces:
        build(workspace)
    standing = sum(sizes().values()) - empty
    first = versions()
    built = grown(lambda: list(map(reword, spaces[:REWORDED])))
    made = versions() - first
    fetch(secrets[0])
    calls = grown(lambda: run(FETCHES, {"calls": CALLS}))
    found = {
        "ledger_row": calls[LEDGER] / CALLS,
        "version": sum(built[name] for name in OF_VERSIONS) / made,
        "record": sum(records.values()) / (WORKSPACES * AGENTS * MEMORIES),
        "agent": standing / (WORKSPACES * AGENTS),
    }
    [length] = one("SELECT avg(characters)::int FROM prompts_promptversion")
    rows = sum(LedgerEntry.objects.in_workspace(workspace).count() for workspace in spaces)
    said = f"{WORKSPACES} workspaces, {WORKSPACES * AGENTS} agents on {CHANNELS} channels, {versions():,} "
    said += f"versions of {length:,} characters, {rows:,} ledger rows; "
    said += f"{sum(sizes().values()) / 1e6:,.0f} MB in all"
    json.dump({"bytes": found, "words": said}, sys.stdout)


def sizes() -> dict[str, int]:
    """Bytes of each table with its indexes and long values, parts by month among them."""
    with connection.cursor() as cursor:
        cursor.execute(SIZE)
        return {name: int(size) for name, size in cursor.fetchall()}


def grown(step: Callable[[], object]) -> dict[str, int]:
    before = sizes()
    step()
    return {name: size - before[name] for name, size in sizes().items() if name in before}


def run(statement: str, values: dict[str, int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def one(question: str) -> tuple[int, ...]:
    with connection.cursor() as cursor:
        cursor.execute(question)
        row: tuple[int, ...] = cursor.fetchone()
    return row


def versions() -> int:
    return one("SELECT count(*) FROM prompts_promptversion")[0]


@transaction.atomic
def cast(workspace: Workspace) -> None:
    """Souls that ten agents share, and agents that all speak on the same channels."""
    channels = list(Channel.objects.in_workspace(workspace).order_by("pk")[:CHANNELS])
    souls = [
        create_named_record(
            Soul, workspace, {"label": f"Soul {at}", "text": f"{BODY}\n{workspace.slug} {at}"}, by=BY
        )
        for at in range(SOULS)
    ]
    for at in range(AGENTS):
        agent = make_agent(
            workspace,
            f"agent-{at:03}",
            name=f"Agent {at:03} of {workspace.name}",
            description=WORDS,
            soul=souls[at % SOULS],
            instructions=f"{BODY}\n{workspace.slug} {at}",
            channels=channels,
        )
        add_responsibility(workspace, {"agent": agent, "title": "Answer the desk", "text": WORDS}, by=BY)


def remember(workspace: Workspace) -> None:
    agents = list(Agent.objects.in_workspace(workspace).order_by("pk"))
    add_memories(workspace, agents, AGENTS * MEMORIES)


def build(workspace: Workspace) -> None:
    agents = Agent.objects.in_workspace(workspace).values_list("pk", flat=True)
    built = rebuild_agents(workspace, list(agents))
    if built.failed:
        raise SystemExit(f"{built.failed} prompts could not be built.")


def reword(workspace: Workspace) -> None:
    """Every soul, and so every prompt."""
    for soul in Soul.objects.in_workspace(workspace):
        text = soul.text.replace("same day", "next day") + "\nNews of today.\n"
        edit_record(soul, {"text": text}, expected=soul.revision, by=BY, message="News")
    build(workspace)


def fetch(secret: str) -> None:
    """One real row, of which the others are copies."""
    workspace = Workspace.objects.get(slug="team-0")
    channel = Channel.objects.in_workspace(workspace).order_by("pk")[0]
    wanted = PromptRequest("agent-000", channel.slug, "production")
    serve_prompt(KeyClient(secret), wanted, CallContext(EMPTY_SLOTS, "bench", ()), cache=ServingCache())


if __name__ == "__main__":
    main()
