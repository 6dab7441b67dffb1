"""Create the data of the fetch bench: one agent with a prompt of about 10 KB, and an API key.

Further workspaces have the same prompt and differ only in the number of erasures. One has many agents, each
with its own prompt and key.
"""

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
from personas.models import Agent, Channel, Erasure, Soul, User, Workspace  # noqa: E402
from personas.records.services import create_record  # noqa: E402
from personas.workspaces.services import create_workspace  # noqa: E402
from prompts.models import PromptVersion  # noqa: E402
from prompts.publishing.builds.services import rebuild_agents  # noqa: E402

BY = Actor("bench")
SENTENCE = "Ask for the order number before you look anything up, and repeat it in the answer. "


# The numbers of erasures that the bench compares.
ERASURE_NUMBERS = (3, 10_003, 100_003)
TOMBSTONES_PER_COMMIT = 1_000
# As many prompts and keys are fetched in turn.
MANY = 256


def main() -> None:
    call_command("migrate", verbosity=0, interactive=False)
    call_command("createcachetable", verbosity=0)
    owner = User.objects.create_user("bench@example.com", None, name="Bench")
    workspace, secret = make_pilot("bench", owner)
    version = PromptVersion.objects.in_workspace(workspace).latest("number")
    secrets = {}
    for number in ERASURE_NUMBERS:
        other, secrets[number] = make_pilot(f"erasures-{number}", owner)
        write_tombstones(other, number)
    results = {"secret": secret, "digest": version.digest, "characters": version.characters}
    json.dump(results | {"erasures": secrets, "many": make_many("many", owner)}, sys.stdout)


def make_pilot(slug: str, owner: User) -> tuple[Workspace, str]:
    """Create a workspace with the agent, and return it with the secret of a key."""
    workspace = create_workspace(slug.title(), slug, owner=owner)
    make_agents(workspace, ["pilot"])
    return workspace, create_key(workspace, "Bench", {}, by=BY)[1]


def make_many(slug: str, owner: User) -> dict[str, str]:
    """Create a workspace with many agents, and return the secret of a key for each."""
    workspace = create_workspace(slug.title(), slug, owner=owner)
    names = [f"pilot-{number:03}" for number in range(MANY)]
    make_agents(workspace, names)
    return {name: create_key(workspace, name, {}, by=BY)[1] for name in names}


def make_agents(workspace: Workspace, names: list[str]) -> None:
    """Create agents that share soul and memories, and build their prompts."""
    soul = create_named_record(Soul, workspace, {"name": "Shared", "text": SENTENCE * 70}, by=BY)
    channel = Channel.objects.in_workspace(workspace).get(slug="web")
    for number in range(30):
        create_memory(workspace, {"text": f"Ship {number} lies at berth {number % 7}. {SENTENCE}"}, by=BY)
    agents = [
        create_record(
            Agent,
            workspace,
            {"slug": name, "name": name.title(), "soul": soul, "channels": [channel]},
            by=BY,
        )
        for name in names
    ]
    rebuild_agents(workspace, [agent.pk for agent in agents])


def write_tombstones(workspace: Workspace, number: int) -> None:
    """Write tombstones of records that no prompt contains."""
    ids = range(1_000_000, 1_000_000 + number)
    tombstones = [
        Erasure(workspace=workspace, kind="memory", object_id=key, reason="Bench", author_label="bench")
        for key in ids
    ]
    for start in range(0, number, TOMBSTONES_PER_COMMIT):
        batch = tombstones[start : start + TOMBSTONES_PER_COMMIT]
        Erasure.objects.in_workspace(workspace).bulk_create(batch)


if __name__ == "__main__":
    main()
