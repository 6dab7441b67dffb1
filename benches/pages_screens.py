"""The screens of the pages bench: what each is called, where it lies, and what is sent to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Screen:
    """One page or fragment; with values, it is posted to."""

    name: str
    path: str
    posted: Mapping[str, str | int] = field(default_factory=dict)
    # A fragment that a page asks for by itself.
    is_fragment: bool = False
    # What it answers when all is well.
    status: int = 200


def screens(told: Mapping[str, Any]) -> list[Screen]:
    """The lightest page first: the others are told in multiples of it."""
    agent, prompt, last = (f"agents/{told['agent']}", f"prompts/{told['prompt']}", told["last"])
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
        "studio": f"studio/{told['agent']}/?part={told['part']}",
        "versions": f"{agent}/versions/",
        "version": f"{prompt}/versions/{last}/",
        "diff": f"{prompt}/diff/1/{last}/",
        "diff, whole": f"{prompt}/diff/1/{last}/?show=all",
        "time machine": "time-machine/",
        "replay": f"time-machine/fetches/{told['fetch']}/",
        "replay against now": f"time-machine/{prompt}/production/{told['first']}/?compare=now",
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
        "bots behind": "ledger/stale/",
    }
    fragments = {
        "palette search": "find/?q=agent",
        "version peek": f"{prompt}/versions/{last}/peek/",
    }
    studio, typed = f"studio/{told['agent']}", told["typed"]
    posted = {
        "studio preview": f"{studio}/preview/?part={told['part']}",
        "studio layouts": f"{studio}/layouts/?part={told['part']}",
    }
    # What was typed is kept and leads to its review.
    review = f"{studio}/review/?part={told['part']}"
    return [
        *(Screen(name, path) for name, path in pages.items()),
        *(Screen(name, path, typed, is_fragment=True) for name, path in posted.items()),
        Screen("studio to review", review, typed, status=302),
        Screen("review", review),
        *(Screen(name, path, is_fragment=True) for name, path in fragments.items()),
    ]
