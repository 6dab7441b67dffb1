"""Services of the quick start: create an agent together with its soul, and an API key for it."""

from core.db.before_commit import atomic_with_hooks
from personas.actors import Actor
from personas.agents.services import create_named_record, find_free_slug
from personas.api_keys.scopes import DEFAULT_VERBS
from personas.api_keys.services import create_key, find_free_key_name
from personas.models import Agent, ApiKey, Channel, Soul, Workspace
from personas.records.services import create_record


@atomic_with_hooks()
def create_agent_with_soul(
    workspace: Workspace, *, name: str, slug: str, soul: str, channel: Channel, by: Actor
) -> Agent:
    """Create an agent on one channel. Its soul is created too, unless the text is empty.

    An empty slug is derived from the name.
    """
    record = None
    if soul.strip():
        record = create_named_record(Soul, workspace, {"name": name, "text": soul}, by=by)
    values = {
        "slug": slug or find_free_slug(Agent, workspace, name),
        "name": name,
        "soul": record,
        "channels": [channel],
    }
    return create_record(Agent, workspace, values, by=by)


def create_agent_key(agent: Agent, *, by: Actor) -> tuple[ApiKey, str]:
    """Create a key that can only fetch prompts of this agent. Return it with its secret."""
    name = find_free_key_name(agent.workspace, agent.name)
    scopes = {"verbs": list(DEFAULT_VERBS), "agents": [agent.slug]}
    return create_key(agent.workspace, name, scopes, by=by)
