"""The screens of the pages bench: name, path and form data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Screen:
    """One page or fragment; with form data it is a POST."""

    name: str
    path: str
    form_data: Mapping[str, str | int] = field(default_factory=dict)
    # A fragment that a page loads with htmx.
    is_fragment: bool = False
    # The expected status.
    status: int = 200


def list_screens(stage: Mapping[str, Any]) -> list[Screen]:
    """Return the screens, the lightest first: the table shows the others as multiples of it."""
    agent, prompt, last = (f"agents/{stage['agent']}", f"prompts/{stage['prompt']}", stage["last"])
    pages = {
        "workspace settings": "settings/",
        "fleet": "",
        "agents": "agents/",
        "agent: persona": f"{agent}/",
        "agent: memory": f"{agent}/memory/",
        "agent: skills": f"{agent}/skills/",
        "agent: tools": f"{agent}/tools/",
        "agent: context": f"{agent}/context/",
        "agent: channels": f"{agent}/channels/",
        "agent: activity": f"{agent}/activity/",
        "studio": f"studio/{stage['agent']}/?part={stage['part']}",
        "versions": f"{agent}/versions/",
        "version": f"{prompt}/versions/{last}/",
        "diff": f"{prompt}/diff/1/{last}/",
        "diff, whole": f"{prompt}/diff/1/{last}/?show=all",
        "time machine": "time-machine/",
        "replay": f"time-machine/fetches/{stage['fetch']}/",
        "replay against now": f"time-machine/{prompt}/production/{stage['first']}/?compare=now",
        "memory board": "memories/board/",
        "memories": "memories/",
        "skills": "skills/",
        "tools": "tools/",
        "channels": "channels/",
        "sources": "sources/",
        "inbox": "inbox/",
        "keys": "keys/",
        "members": "members/",
        "labels": "labels/",
        "releases": "releases/",
        "new release": "releases/new/",
        "release": "releases/1/",
        "audit": "audit/",
        "ledger": "ledger/",
        "bots behind": "ledger/outdated/",
    }
    fragments = {
        "palette search": "find/?q=agent",
        "version peek": f"{prompt}/versions/{last}/peek/",
    }
    studio, typed = f"studio/{stage['agent']}", stage["typed"]
    previews = {
        "studio preview": f"{studio}/preview/?part={stage['part']}",
        "studio layouts": f"{studio}/layouts/?part={stage['part']}",
    }
    # This saves the typed text as a draft and redirects to its review.
    review = f"{studio}/review/?part={stage['part']}"
    return [
        *(Screen(name, path) for name, path in pages.items()),
        *(Screen(name, path, typed, is_fragment=True) for name, path in previews.items()),
        Screen("studio to review", review, typed, status=302),
        Screen("review", review),
        *(Screen(name, path, is_fragment=True) for name, path in fragments.items()),
    ]
