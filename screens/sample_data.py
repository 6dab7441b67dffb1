"""Sample data that the demo lacks: second versions, a release, fetches, an empty workspace."""

from datetime import timedelta

import httpx
from django.utils import timezone

from personas.actors import Actor
from personas.api_keys.services import create_key
from personas.models import Soul, User, Workspace
from personas.records.services import edit_record
from personas.selectors import list_memories
from personas.webhooks.services import create_endpoint, send_test_event
from personas.workspaces.services import create_workspace
from prompts.models import PromptVersion
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.comments.selectors import get_version_lines
from prompts.publishing.comments.services import comment_on_line, comment_on_memory
from prompts.publishing.releases.selectors import list_releasable_prompts
from prompts.publishing.releases.services import request_release
from screens.screen_list import EMPTY

FETCHED_PROMPTS = (("field-research", "slack"), ("code-review", "cli"), ("night-shift", "slack"))


def add_sample_data(address: str) -> str:
    """Create the data through the services and return the slug of the demo workspace."""
    workspace = Workspace.objects.get(slug="larkfell")
    owner = User.objects.get(email="alice@example.com")
    alice = Actor.person(owner)
    edit_soul(workspace, alice)
    request_release(
        workspace, list_releasable_prompts(workspace), message="A warmer greeting at the hut", by=alice
    )
    add_comments(workspace, alice)
    fetch_prompts(workspace, alice, address)
    add_webhook(workspace, alice)
    create_workspace("Quiet bay", EMPTY, owner=owner)
    return workspace.slug


def edit_soul(workspace: Workspace, by: Actor) -> None:
    soul = Soul.objects.in_workspace(workspace).get(name="At the hut table")
    text = f"{soul.text}\n\nGreet people by the name they gave, once, and get to the point."
    edit_record(soul, {"text": text}, expected=soul.revision, by=by, message="Greet by name")
    rebuild_agents(workspace, soul.agent_ids())


def add_comments(workspace: Workspace, by: Actor) -> None:
    """Comment on the memory of the picture, and twice on the line that `edit_soul` added."""
    bob = Actor.person(User.objects.get(email="bob@example.com"))
    for memory in list_memories(workspace).filter(text__startswith="Tomasz leaves"):
        comment_on_memory(memory, text="Is this every week, or only this month?", by=bob)
        comment_on_memory(memory, text="Every week until the summer. I asked him.", by=by)
    versions = PromptVersion.objects.in_workspace(workspace).filter(prompt__agent__slug="hut-support")
    for version in versions.filter(prompt__channel__slug="telegram", number=2):
        lines = enumerate(get_version_lines(version), 1)
        line = next(number for number, text in lines if text.startswith("Greet people"))
        comment_on_line(version, line, text="Once per conversation, or once per day?", by=bob)
        comment_on_line(version, line, text="Per conversation. A bot does not know the day.", by=by)


def add_webhook(workspace: Workspace, by: Actor) -> None:
    values = {"name": "Deploy bot", "url": "https://hooks.example.com/dramatis", "labels": ["production"]}
    endpoint, _secret = create_endpoint(workspace, values, by=by)
    send_test_event(endpoint, by=by)


def fetch_prompts(workspace: Workspace, by: Actor, address: str) -> None:
    expires_at = timezone.now() + timedelta(days=90)
    _key, secret = create_key(workspace, "Night bot", {"verbs": ["fetch"]}, expires_at, by=by)
    for agent, channel in FETCHED_PROMPTS:
        httpx.get(
            f"{address}/api/v1/agents/{agent}/channels/{channel}/prompt",
            headers={"Authorization": f"Bearer {secret}"},
            timeout=30,
            trust_env=False,
        ).raise_for_status()
