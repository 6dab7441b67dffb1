"""Lines that use a key, ready to be pasted."""

from dataclasses import dataclass

from personas.api_keys.key_powers import Scoped
from personas.api_keys.scopes import FETCH, verbs_of

VARIABLE = "DRAMATIS_KEY"
USUAL_LABEL = "production"


@dataclass(frozen=True)
class Example:
    """What to put into a shell and into a program; only the first line holds the secret itself."""

    export: str
    curl: str
    python: str


def example(url: str, secret: str) -> Example:
    return Example(
        export=f"export {VARIABLE}={secret}",
        curl=f'curl --fail-with-body -H "Authorization: Bearer ${VARIABLE}" "{url}"',
        python="\n".join(
            [
                "import json, os, urllib.request",
                "",
                f'url = "{url}"',
                f'headers = {{"Authorization": "Bearer " + os.environ["{VARIABLE}"]}}',
                "request = urllib.request.Request(url, headers=headers)",
                "print(json.load(urllib.request.urlopen(request)))",
            ]
        ),
    )


def address(public_url: str, key: Scoped, agent: str, channel: str) -> str:
    """Something that this key opens: a prompt, or the list of agents if it may not fetch."""
    if FETCH not in verbs_of(key.scopes, key.kind):
        return f"{public_url}/api/v1/agents"
    labels = key.scopes.get("labels") or [USUAL_LABEL]
    label = "" if USUAL_LABEL in labels else f"&label={labels[0]}"
    return f"{public_url}/api/v1/agents/{agent or 'AGENT'}/prompt?channel={channel or 'CHANNEL'}{label}"
