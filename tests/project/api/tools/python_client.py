"""Call a server with the client of openapi-python-client. Print what was found as JSON."""

import json
import sys
from typing import TypeVar

from generated_client import AuthenticatedClient
from generated_client.api.agents import get_agent, list_agents, update_agent
from generated_client.api.labels import list_prompt_labels
from generated_client.api.memories import (
    archive_memory,
    create_memory,
    get_memory,
    list_memories,
    update_memory,
)
from generated_client.api.prompt_versions import get_prompt_version, list_prompt_versions
from generated_client.api.prompts import batch_get_prompts, get_prompt
from generated_client.models import (
    AgentPatch,
    BatchInput,
    BatchItem,
    MemoryInput,
    MemoryPatch,
    Problem,
    ServedResult,
)

T = TypeVar("T")
URL, KEY, AGENT, CHANNEL = sys.argv[1:]
client = AuthenticatedClient(base_url=URL, token=KEY)
calls = 0


def check(result: T | Problem | None) -> T:
    """Return the result of a call. Exit with its problem if it has one."""
    global calls  # noqa: PLW0603  # a script
    calls += 1
    if result is None or isinstance(result, Problem):
        sys.exit(f"call {calls}: {result}")
    return result


agents = check(list_agents.sync(client=client, limit=10))
before = check(get_agent.sync(AGENT, client=client))
patch = AgentPatch(description="Changed by Python.")
after = check(update_agent.sync(AGENT, client=client, body=patch, if_match=before.etag))
prompt = check(get_prompt.sync(AGENT, CHANNEL, client=client))
memory = check(create_memory.sync(client=client, body=MemoryInput(text="Written by Python.", agent=AGENT)))
memories = check(list_memories.sync(client=client, q="by Python"))
one = check(get_memory.sync(memory.id, client=client))
edited = check(update_memory.sync(one.id, client=client, body=MemoryPatch(source="test"), if_match=one.etag))
archived = archive_memory.sync_detailed(edited.id, client=client, if_match=edited.etag)
labels = check(list_prompt_labels.sync(AGENT, CHANNEL, client=client))
versions = check(list_prompt_versions.sync(AGENT, CHANNEL, client=client))
digest = versions.items[0].digest
version = check(get_prompt_version.sync(digest, client=client))
items = [BatchItem(agent=AGENT, channel=CHANNEL), BatchItem(agent="nobody", channel=CHANNEL)]
batch = check(batch_get_prompts.sync(client=client, body=BatchInput(prompts=items)))
missing = get_agent.sync("nobody", client=client)
print(
    json.dumps(
        {
            "agents": [agent.slug for agent in agents.items],
            "layouts": [before.layout, after.layout],
            "description": after.description,
            "prompt": [
                prompt.version,
                len(prompt.text),
                "".join(block.text for block in prompt.blocks) == prompt.text,
            ],
            "memories": [memory.text for memory in memories.items],
            "source": edited.source,
            "archived": int(archived.status_code),
            "labels": [label.name for label in labels.items],
            "version": version.digest == digest,
            "batch": [
                result.prompt.agent if isinstance(result, ServedResult) else result.status
                for result in batch.results
            ],
            "problem": missing.code if isinstance(missing, Problem) else None,
            "calls": calls + 2,
        }
    )
)
