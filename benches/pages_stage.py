"""Create the large workspace of the pages bench: agents, channels, memories, versions, a day of fetches."""

import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from django.conf import settings  # noqa: E402  # Django first
from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from benches.pages_rows import add_day_of_fetches, add_memories  # noqa: E402
from benches.source import BODY, HEAD, SENTENCE  # noqa: E402
from personas.actors import Actor  # noqa: E402
from personas.agents.services import create_named_record  # noqa: E402
from personas.api_keys.services import create_key  # noqa: E402
from personas.models import Agent, Channel, Identity, Soul, User, Workspace  # noqa: E402
from personas.records.services import edit_record  # noqa: E402
from personas.roles import Role  # noqa: E402
from personas.work.services import add_responsibility  # noqa: E402
from personas.workspaces.services import create_workspace  # noqa: E402
from prompts.evidence.ledger.blocks import seal_ledger  # noqa: E402
from prompts.models import AgentPrompt, LedgerEntry, PromptVersion  # noqa: E402
from prompts.proof.canonical import format_timestamp  # noqa: E402
from prompts.publishing.builds.services import rebuild_agents  # noqa: E402
from prompts.publishing.labels.services import move_label  # noqa: E402
from prompts.publishing.releases.services import approve_release, request_release, run_release  # noqa: E402
from tests.factories import (  # noqa: E402
    join,
    make_agent,
    make_channel,
    make_skill,
    make_source,
    make_tool,
    make_user,
    refreshed,
    signed_in,
)

AGENTS, CHANNELS, MEMORIES, FETCHES = 200, 6, 10_000, 20_000
SOULS, IDENTITIES, TOOLS, SKILLS, FILES, KEYS, MEMBERS = 12, 20, 30, 40, 120, 40, 12
EDITS, REVIEWED_EVERY = 3, 5
LAYOUTS = ("dramatis", "dramatis", "opal", "pi", "moltis", "nova", "ptc")
BY = Actor("bench")


def main() -> None:
    call_command("migrate", verbosity=0, interactive=False)
    call_command("createcachetable", verbosity=0)
    owner, bob, carol = (make_user(name) for name in ("Alice", "Bob", "Carol"))
    workspace = create_workspace("Bench", "bench", owner=owner)
    join(workspace, bob)
    join(workspace, carol, Role.ADMIN)
    with transaction.atomic():
        souls = create_members_and_records(workspace)
        agents = create_agents(workspace, souls)
    add_memories(workspace, agents, MEMORIES)
    create_source(workspace)
    build_prompts(workspace, agents)
    release_all(workspace, Actor.person(bob), Actor.person(carol))
    for number in range(EDITS):
        edit_souls(souls, number)
        build_prompts(workspace, agents)
    label_prompts(workspace)
    add_day_of_fetches(workspace, FETCHES)
    seal_ledger(workspace.pk)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    json.dump(describe_stage(workspace, owner), sys.stdout)


def create_members_and_records(workspace: Workspace) -> list[Soul]:
    for number in range(MEMBERS):
        join(workspace, make_user(f"Member {number}", email=f"member{number}@example.com"))
    for number in range(KEYS):
        create_key(workspace, f"Bot {number}", {}, by=BY)
    for number in range(TOOLS):
        make_tool(workspace, f"tool_{number}", description=SENTENCE)
    for number in range(SKILLS):
        make_skill(workspace, f"skill-{number}", description=SENTENCE, body=BODY)
    for number in range(IDENTITIES):
        create_named_record(
            Identity, workspace, {"name": f"Identity {number}", "emoji": "🦊", "vibe": "calm"}, by=BY
        )
    return [
        create_named_record(Soul, workspace, {"name": f"Soul {number}", "text": BODY}, by=BY)
        for number in range(SOULS)
    ]


def create_agents(workspace: Workspace, souls: list[Soul]) -> list[Agent]:
    """Create agents on all channels; every fifth has the reviewed release policy."""
    channels = list(Channel.objects.in_workspace(workspace).order_by("pk")[:CHANNELS])
    channels += [make_channel(workspace, f"line-{at}") for at in range(CHANNELS - len(channels))]
    identities = list(Identity.objects.in_workspace(workspace))
    return [create_agent(workspace, at, souls, identities, channels) for at in range(AGENTS)]


def create_agent(
    workspace: Workspace, at: int, souls: list[Soul], identities: list[Identity], channels: list[Channel]
) -> Agent:
    agent = make_agent(
        workspace,
        f"agent-{at:03}",
        name=f"Agent {at:03}",
        description=SENTENCE,
        layout=LAYOUTS[at % len(LAYOUTS)],
        soul=souls[at % SOULS],
        identity=identities[at % IDENTITIES],
        instructions=BODY,
        channels=channels,
        release_policy="automatic" if at % REVIEWED_EVERY else "reviewed",
    )
    for title in ("Answer the desk", "Follow up on parcels"):
        add_responsibility(workspace, {"agent": agent, "title": title, "text": SENTENCE}, by=BY)
    return agent


def create_source(workspace: Workspace) -> None:
    """Create a source whose files wait in the inbox; every tenth has an invisible character."""
    root = Path(settings.DRAMATIS_SOURCE_ROOTS[0])
    for at in range(FILES):
        folder = root / f"team{at % 10}" / f"part{at}"
        is_skill = at % 3 == 0
        path = (
            folder / ".agents" / "skills" / f"found-{at}" / "SKILL.md" if is_skill else folder / "AGENTS.md"
        )
        path.parent.mkdir(parents=True)
        invisible = "" if at % 10 else "Read\u200bon.\n"
        head = HEAD.format(name=path.parent.name, description=SENTENCE) if is_skill else "# Rules\n\n"
        path.write_text(f"{head}{at}\n{invisible}{BODY}", encoding="utf-8")
    refreshed(make_source(workspace, root))


def build_prompts(workspace: Workspace, agents: list[Agent]) -> None:
    result = rebuild_agents(workspace, [agent.pk for agent in agents])
    if result.failed:
        raise SystemExit(f"{result.failed} prompts could not be built.")


def release_all(workspace: Workspace, bob: Actor, carol: Actor) -> None:
    """Release the first versions of reviewed agents; later versions wait for review.

    Alice cannot approve them: she created the workspace, and with it the first channels.
    """
    prompts = AgentPrompt.objects.in_workspace(workspace).filter(agent__release_policy="reviewed")
    release = request_release(workspace, prompts, message="First words", by=bob)
    run_release(approve_release(release, by=carol), by=carol)


def edit_souls(souls: list[Soul], number: int) -> None:
    for soul in souls:
        soul.refresh_from_db()
        text = BODY.replace("same day", f"day {number}") + f"\nNews of round {number}.\n"
        edit_record(soul, {"text": text}, expected=soul.revision, by=BY, message=f"Round {number}")


def label_prompts(workspace: Workspace) -> None:
    rows = AgentPrompt.objects.in_workspace(workspace).select_related("latest")
    for prompt in rows.order_by("pk")[:60]:
        if prompt.latest:
            move_label(prompt, "canary", prompt.latest, expected=None, by=BY)


def describe_stage(workspace: Workspace, owner: User) -> dict[str, object]:
    """Return the ids and the session that the measurements need."""
    prompts = AgentPrompt.objects.in_workspace(workspace).select_related("agent__soul").order_by("pk")
    # The first prompt whose production label follows every build.
    prompt = prompts.filter(agent__release_policy="automatic")[0]
    soul, versions = prompt.agent.soul, PromptVersion.objects.in_workspace(workspace)
    if soul is None:
        raise SystemExit("The agent has no soul.")
    entries = LedgerEntry.objects.in_workspace(workspace)
    entry = entries.filter(prompt=prompt).order_by("pk").first() or entries.earliest("pk")
    client = signed_in(owner)
    return {
        "summary": f"{AGENTS} agents on {CHANNELS} channels, {MEMORIES:,} memories, {versions.count():,} "
        f"versions, {entries.count():,} fetches of the last day",
        "session": client.cookies[settings.SESSION_COOKIE_NAME].value,
        "cookie": settings.SESSION_COOKIE_NAME,
        "workspace": workspace.slug,
        "agent": prompt.agent.slug,
        "part": f"souls:{soul.slug}",
        "typed": {"name": soul.name, "text": f"{soul.text}\nOne more line.\n", "revision": soul.revision},
        "prompt": prompt.pk,
        "last": prompt.last_number,
        "fetch": entry.pk,
        "first": format_timestamp(prompt.versions.order_by("number")[0].created_at + timedelta(seconds=1)),
    }


if __name__ == "__main__":
    main()
