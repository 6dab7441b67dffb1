"""Create the data of the peers bench: a prompt of about 10 KB for each connection, and two API keys."""

import json
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benches.fetch_settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # Django first

from benches.fetch_stage import SENTENCE  # noqa: E402
from personas.actors import Actor  # noqa: E402
from personas.agents.services import create_named_record  # noqa: E402
from personas.api_keys.format import ADMIN  # noqa: E402
from personas.api_keys.services import create_key  # noqa: E402
from personas.memories.services import create_memory  # noqa: E402
from personas.models import Agent, Channel, Soul, User, Workspace  # noqa: E402
from personas.records.services import create_record, edit_record  # noqa: E402
from personas.workspaces.services import create_workspace  # noqa: E402
from prompts.models import AgentPrompt  # noqa: E402
from prompts.publishing.builds.services import rebuild_agents  # noqa: E402
from prompts.publishing.labels.services import move_label  # noqa: E402

BY = Actor("bench")
SOUL = SENTENCE * 70


def main(prompts: int, shared_soul_agents: int) -> None:
    call_command("migrate", verbosity=0, interactive=False)
    call_command("createcachetable", verbosity=0)
    owner = User.objects.create_user("bench@example.com", None, name="Bench")
    workspace = create_workspace("Bench", "bench", owner=owner)
    for number in range(30):
        create_memory(workspace, {"text": f"Ship {number} lies at berth {number % 7}. {SENTENCE}"}, by=BY)
    channel = Channel.objects.in_workspace(workspace).get(slug="web")
    for number in range(prompts):
        make_prompt(workspace, channel, f"{number:05}")
    make_shared_soul_agents(workspace, channel, shared_soul_agents)
    _, bot = create_key(workspace, "Bot", {}, by=BY)
    _, admin = create_key(workspace, "Script", {}, by=Actor.person(owner), kind=ADMIN)
    json.dump({"bot": bot, "admin": admin, "soul": SOUL}, sys.stdout)


def make_prompt(workspace: Workspace, channel: Channel, name: str) -> None:
    """Create an agent with its own soul and two versions, between which the label `canary` can move."""
    soul = create_named_record(Soul, workspace, {"name": f"Soul {name}", "text": SENTENCE}, by=BY)
    values = {"slug": f"pilot-{name}", "name": "Pilot", "soul": soul, "channels": [channel]}
    agent = create_record(Agent, workspace, values, by=BY)
    rebuild_agents(workspace, [agent.pk])
    soul.refresh_from_db()
    edit_record(soul, {"text": SOUL}, expected=soul.revision, by=BY)
    rebuild_agents(workspace, [agent.pk])
    prompt = AgentPrompt.objects.in_workspace(workspace).get(agent=agent)
    if prompt.latest is None:
        raise SystemExit("The prompt has no version.")
    move_label(prompt, "canary", prompt.latest, expected=None, by=BY, note="")


def make_shared_soul_agents(workspace: Workspace, channel: Channel, count: int) -> None:
    """Create agents that share a soul."""
    soul = create_named_record(Soul, workspace, {"name": "Soul crew", "text": SOUL}, by=BY)
    for number in range(count):
        values = {"slug": f"crew-{number:05}", "name": "Hand", "soul": soul, "channels": [channel]}
        create_record(Agent, workspace, values, by=BY)
    rebuild_agents(workspace, list(soul.agent_ids()))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
