"""Fill a PostgreSQL database with workspaces of ordinary size and measure the bytes that each step adds."""

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
from benches.source import BODY, SENTENCE  # noqa: E402
from personas.actors import Actor  # noqa: E402
from personas.agents.services import create_named_record  # noqa: E402
from personas.api_keys.services import create_key  # noqa: E402
from personas.models import Agent, Channel, Soul, Workspace  # noqa: E402
from personas.records.services import edit_record  # noqa: E402
from personas.work.services import add_responsibility  # noqa: E402
from personas.workspaces.services import create_workspace  # noqa: E402
from prompts.models import LedgerEntry  # noqa: E402
from prompts.publishing.builds.services import rebuild_agents  # noqa: E402
from prompts.serving.cache import ServingCache  # noqa: E402
from prompts.serving.request import EMPTY_SLOTS, CallContext, KeyClient, PromptRequest  # noqa: E402
from prompts.serving.services import serve_prompt  # noqa: E402
from tests.factories import make_agent, make_user  # noqa: E402

WORKSPACES, AGENTS, CHANNELS, SOULS, MEMORIES = 20, 30, 3, 3, 10
# Workspaces whose prompts are all rebuilt once more, and ledger rows.
REWORDED, CALLS = 10, 200_000
BY = Actor("bench")
LEDGER = "prompts_ledgerentry"
# Tables to which a new version adds rows; equal texts are stored once.
VERSION_TABLES = ("prompts_promptversion", "prompts_versionpart", "prompts_labelmove", "personas_content")
SIZE = """
    SELECT c.relname,
        coalesce((SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree(c.oid)),
            pg_total_relation_size(c.oid))
    FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
"""
# Copies of the row of one real fetch, over all prompts in turn and ordered by time. Request ids and digests
# are random, so that the indexes grow as with real rows.
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
    empty = sum(get_table_sizes().values())
    owner = make_user("Alice")
    spaces = [create_workspace(f"Team {at}", f"team-{at}", owner=owner) for at in range(WORKSPACES)]
    secrets = [create_key(workspace, "Bot", {}, by=BY)[1] for workspace in spaces]
    for workspace in spaces:
        create_agents(workspace)
    record_growth = measure_growth(lambda: list(map(create_memories, spaces)))
    for workspace in spaces:
        build_prompts(workspace)
    initial = sum(get_table_sizes().values()) - empty
    versions_before = count_versions()
    version_growth = measure_growth(lambda: list(map(edit_souls, spaces[:REWORDED])))
    version_count = count_versions() - versions_before
    fetch_prompt(secrets[0])
    ledger_growth = measure_growth(lambda: run_sql(FETCHES, {"calls": CALLS}))
    row_bytes = {
        "ledger_row": ledger_growth[LEDGER] / CALLS,
        "version": sum(version_growth[name] for name in VERSION_TABLES) / version_count,
        "record": sum(record_growth.values()) / (WORKSPACES * AGENTS * MEMORIES),
        "agent": initial / (WORKSPACES * AGENTS),
    }
    [length] = query_row("SELECT avg(characters)::int FROM prompts_promptversion")
    rows = sum(LedgerEntry.objects.in_workspace(workspace).count() for workspace in spaces)
    summary = (
        f"{WORKSPACES} workspaces, {WORKSPACES * AGENTS} agents on {CHANNELS} channels, {count_versions():,} "
    )
    summary += f"versions of {length:,} characters, {rows:,} ledger rows; "
    summary += f"{sum(get_table_sizes().values()) / 1e6:,.0f} MB in all"
    json.dump({"bytes": row_bytes, "summary": summary}, sys.stdout)


def get_table_sizes() -> dict[str, int]:
    """Return the bytes of each table with its indexes, TOAST values and monthly partitions."""
    with connection.cursor() as cursor:
        cursor.execute(SIZE)
        return {name: int(size) for name, size in cursor.fetchall()}


def measure_growth(step: Callable[[], object]) -> dict[str, int]:
    before = get_table_sizes()
    step()
    return {name: size - before[name] for name, size in get_table_sizes().items() if name in before}


def run_sql(statement: str, values: dict[str, int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def query_row(query: str) -> tuple[int, ...]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        row: tuple[int, ...] = cursor.fetchone()
    return row


def count_versions() -> int:
    return query_row("SELECT count(*) FROM prompts_promptversion")[0]


@transaction.atomic
def create_agents(workspace: Workspace) -> None:
    """Create souls shared by ten agents each, and agents on the same channels."""
    channels = list(Channel.objects.in_workspace(workspace).order_by("pk")[:CHANNELS])
    souls = [
        create_named_record(
            Soul, workspace, {"name": f"Soul {at}", "text": f"{BODY}\n{workspace.slug} {at}"}, by=BY
        )
        for at in range(SOULS)
    ]
    for at in range(AGENTS):
        agent = make_agent(
            workspace,
            f"agent-{at:03}",
            name=f"Agent {at:03} of {workspace.name}",
            description=SENTENCE,
            soul=souls[at % SOULS],
            instructions=f"{BODY}\n{workspace.slug} {at}",
            channels=channels,
        )
        add_responsibility(workspace, {"agent": agent, "title": "Answer the desk", "text": SENTENCE}, by=BY)


def create_memories(workspace: Workspace) -> None:
    agents = list(Agent.objects.in_workspace(workspace).order_by("pk"))
    add_memories(workspace, agents, AGENTS * MEMORIES)


def build_prompts(workspace: Workspace) -> None:
    agents = Agent.objects.in_workspace(workspace).values_list("pk", flat=True)
    built = rebuild_agents(workspace, list(agents))
    if built.failed:
        raise SystemExit(f"{built.failed} prompts could not be built.")


def edit_souls(workspace: Workspace) -> None:
    """Edit every soul, which changes every prompt."""
    for soul in Soul.objects.in_workspace(workspace):
        text = soul.text.replace("same day", "next day") + "\nNews of today.\n"
        edit_record(soul, {"text": text}, expected=soul.revision, by=BY, message="News")
    build_prompts(workspace)


def fetch_prompt(secret: str) -> None:
    """Fetch once, for the ledger row that the others copy."""
    workspace = Workspace.objects.get(slug="team-0")
    channel = Channel.objects.in_workspace(workspace).order_by("pk")[0]
    request = PromptRequest("agent-000", channel.slug, "production")
    serve_prompt(KeyClient(secret), request, CallContext(EMPTY_SLOTS, "bench", ()), cache=ServingCache())


if __name__ == "__main__":
    main()
