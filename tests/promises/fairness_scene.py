"""Builds two tenants for the fairness proof: a person with 50 workspaces, and one with one of each record.

Run as `python -m tests.promises.fairness_scene build FOLDER`; the environment names the database.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from django.conf import settings  # noqa: E402  # Django first
from django.core.management import call_command  # noqa: E402

from benches.history import extend_history  # noqa: E402
from personas.actors import Actor  # noqa: E402
from personas.agents.services import create_named_record  # noqa: E402
from personas.api_keys.format import ADMIN  # noqa: E402
from personas.api_keys.services import create_key  # noqa: E402
from personas.models import Agent, AgentChannel, Channel, Soul, User, Workspace  # noqa: E402
from personas.records.services import create_record  # noqa: E402
from personas.webhooks.services import create_endpoint  # noqa: E402
from personas.workspaces.services import create_workspace  # noqa: E402
from prompts.models import AgentPrompt  # noqa: E402
from prompts.publishing.builds.services import rebuild_agents  # noqa: E402
from skills.agent_context.services import choose_context  # noqa: E402
from skills.models import Source  # noqa: E402
from skills.refresh.source_changes import add_source  # noqa: E402
from tests.factories import make_source, refreshed, signed_in  # noqa: E402
from tests.promises import RECEIVER  # noqa: E402
from tests.promises.scene import BY, SENTENCE  # noqa: E402

# Agents that share one soul. Only the first few have a prompt before the flood.
AGENTS, BUILT_AGENTS = 1_000, 5
SOURCES, FILES_PER_SOURCE = 200, 12
LEDGER_ROWS, VERSIONS = 60_000, 100
KEYS = 10
# The further workspaces of the large tenant: 50 with `a` and `a2`.
OTHERS, AGENTS_OF_OTHERS = 48, 20


def build(folder: Path) -> dict[str, Any]:
    """Create the large tenant with its workspaces (a, a2 and others), and the small tenant with one (b)."""
    call_command("migrate", verbosity=0, interactive=False)
    call_command("createcachetable", verbosity=0)
    settings.DRAMATIS_SOURCE_ROOTS = [folder]
    settings.DRAMATIS_WORKSPACES_PER_PERSON = 0
    alice = User.objects.create_user("alice@example.com", None, name="Alice")
    bob = User.objects.create_user("bob@example.com", None, name="Bob")
    large = build_workspace("a", alice, AGENTS)
    large["sources"] = [
        build_source(large["workspace"], folder / f"a{number}", FILES_PER_SOURCE) for number in range(SOURCES)
    ]
    second = build_workspace("a2", alice, BUILT_AGENTS)
    for one in (large, second):
        prompt = AgentPrompt.objects.in_workspace(one["workspace"]).order_by("pk")[0]
        extend_history(one["workspace"], prompt, LEDGER_ROWS, VERSIONS)
    others = [build_other(f"o{number}", alice) for number in range(OTHERS)]
    small = build_workspace("b", bob, 1)
    small["sources"] = [build_source(small["workspace"], folder / "b", 1)]
    use_source(small["workspace"])
    facts = {"a": json_facts(large), "a2": json_facts(second), "b": json_facts(small)}
    return facts | {"others": others, "person": alice.pk}


def build_other(slug: str, owner: User) -> dict[str, Any]:
    """Create a workspace with agents that share a soul, a source of pushed files and a webhook endpoint."""
    workspace = create_workspace(slug.upper(), slug, owner=owner)
    channel = Channel.objects.in_workspace(workspace).order_by("pk")[0]
    soul = create_named_record(Soul, workspace, {"name": "Soul", "text": SENTENCE}, by=BY)
    add_agents(workspace, soul, channel, range(AGENTS_OF_OTHERS))
    values = {"name": "Pushed", "source_kind": "pushed", "approval": "automatic"}
    source, _ = add_source(workspace, values, by=BY)
    # The receiver accepts the connection and never answers.
    create_endpoint(workspace, {"name": "Desk", "url": f"{os.environ[RECEIVER]}/{slug}"}, by=BY)
    return {
        "id": workspace.pk,
        "soul": soul.slug,
        "source": source.slug,
        "editor": create_key(workspace, "Editor", {}, by=Actor.person(owner), kind=ADMIN)[1],
    }


def build_workspace(slug: str, owner: User, agents: int) -> dict[str, Any]:
    workspace = create_workspace(slug.upper(), slug, owner=owner)
    channel = Channel.objects.in_workspace(workspace).order_by("pk")[0]
    soul = create_named_record(Soul, workspace, {"name": "Soul", "text": SENTENCE * 20}, by=BY)
    for number in range(min(agents, BUILT_AGENTS)):
        values = {"slug": f"a{number}", "name": f"Agent {number}", "soul": soul, "channels": [channel]}
        create_record(Agent, workspace, values, by=BY)
    add_agents(workspace, soul, channel, range(BUILT_AGENTS, agents))
    first = Agent.objects.in_workspace(workspace).order_by("pk").values_list("pk", flat=True)[:BUILT_AGENTS]
    rebuild_agents(workspace, first)
    cookies = signed_in(owner).cookies
    return {
        "workspace": workspace,
        "id": workspace.pk,
        "soul": soul.slug,
        "agents": [f"a{number}" for number in range(min(agents, BUILT_AGENTS))],
        "channel": channel.slug,
        "bots": [create_key(workspace, f"Bot {number}", {}, by=BY)[1] for number in range(KEYS)],
        "editor": create_key(workspace, "Editor", {}, by=Actor.person(owner), kind=ADMIN)[1],
        "cookie": f"{settings.SESSION_COOKIE_NAME}={cookies[settings.SESSION_COOKIE_NAME].value}",
    }


def add_agents(workspace: Workspace, soul: Soul, channel: Channel, numbers: range) -> None:
    """Add agents without revisions: creating a thousand one by one takes a minute."""
    rows = [
        Agent(workspace=workspace, slug=f"a{number}", name=f"Agent {number}", soul=soul, revision=1)
        for number in numbers
    ]
    agents = Agent.objects.in_workspace(workspace).bulk_create(rows)
    AgentChannel.objects.in_workspace(workspace).bulk_create(
        [AgentChannel(workspace=workspace, agent=agent, channel=channel, position=0) for agent in agents]
    )


def build_source(workspace: Workspace, folder: Path, files: int) -> str:
    """Create a source with one file of instructions and some skills."""
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Be kind.\n")
    for number in range(files - 1):
        skill = folder / "skills" / f"skill-{number}"
        skill.mkdir(parents=True)
        head = f"---\nname: skill-{number}\ndescription: Finds the order with number {number}.\n---\n"
        (skill / "SKILL.md").write_text(head + SENTENCE * 400)
    source = make_source(workspace, folder, folder.name, refresh_minutes=None, harnesses=["pi"])
    return source.slug


def use_source(workspace: Workspace) -> None:
    agent = Agent.objects.in_workspace(workspace).get()
    source = Source.objects.in_workspace(workspace).get()
    choose_context(agent, source, "pi", working_directory="", expected=agent.revision, by=BY)
    refreshed(source)
    rebuild_agents(workspace, [agent.pk])


def json_facts(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != "workspace"}


if __name__ == "__main__":
    _, place = sys.argv[1:]
    sys.stdout.write(json.dumps(build(Path(place))) + "\n")
