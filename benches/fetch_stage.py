"""Create the data of the fetch bench: one agent with a prompt of about 10 KB, and an API key."""

import json
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benches.fetch_settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # Django first

from personas.actors import Actor  # noqa: E402
from personas.agents.services import create_named_record  # noqa: E402
from personas.api_keys.services import create_key  # noqa: E402
from personas.memories.services import create_memory  # noqa: E402
from personas.models import Agent, Channel, Soul, User  # noqa: E402
from personas.records.services import create_record  # noqa: E402
from personas.workspaces.services import create_workspace  # noqa: E402
from prompts.builds.services import rebuild_agents  # noqa: E402
from prompts.models import PromptVersion  # noqa: E402

BY = Actor("bench")
SENTENCE = "Ask for the order number before you look anything up, and repeat it in the answer. "


def main() -> None:
    call_command("migrate", verbosity=0, interactive=False)
    call_command("createcachetable", verbosity=0)
    owner = User.objects.create_user("bench@example.com", None, name="Bench")
    workspace = create_workspace("Bench", "bench", owner=owner)
    soul = create_named_record(Soul, workspace, {"label": "Shared", "text": SENTENCE * 70}, by=BY)
    channel = Channel.objects.in_workspace(workspace).get(slug="web")
    for number in range(30):
        create_memory(workspace, {"text": f"Ship {number} lies at berth {number % 7}. {SENTENCE}"}, by=BY)
    values = {"slug": "pilot", "name": "Pilot", "soul": soul, "channels": [channel]}
    agent = create_record(Agent, workspace, values, by=BY)
    rebuild_agents(workspace, [agent.pk])
    _, secret = create_key(workspace, "Bench", {}, by=BY)
    version = PromptVersion.objects.in_workspace(workspace).latest("number")
    json.dump({"secret": secret, "digest": version.digest, "characters": version.characters}, sys.stdout)


if __name__ == "__main__":
    main()
