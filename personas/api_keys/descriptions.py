"""Says in words what a key is for and how it stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from core.text.lists import first_few
from personas.api_keys.scopes import APPROVE, FETCH, MANAGE, READ, RENDER, VERBS, WRITE, Scoped, verbs_of

# As a form offers them.
VERB_CHOICES = (
    (FETCH, _("Fetch prompts")),
    (RENDER, _("Render prompts")),
    (READ, _("Read records")),
    (WRITE, _("Write")),
    (APPROVE, _("Approve (admin keys)")),
    (MANAGE, _("Manage (admin keys)")),
)
VERB_HELP = _(
    "To render is to fetch with the facts of a call. A bot writes its own things only: it proposes memories, "
    "ticks steps, pushes files; an admin key writes what its maker may edit. To manage is to see to sources "
    "and keys."
)
# As a list of them reads.
VERB_WORDS = {
    FETCH: _("fetch"),
    RENDER: _("render"),
    READ: _("read"),
    WRITE: _("write"),
    APPROVE: _("approve"),
    MANAGE: _("manage"),
}
LIMIT_WORDS = {
    "agent": ngettext_lazy("Agent %(names)s", "Agents %(names)s", "count"),
    "channel": ngettext_lazy("Channel %(names)s", "Channels %(names)s", "count"),
    "label": ngettext_lazy("Label %(names)s", "Labels %(names)s", "count"),
}
SOON = timedelta(days=14)
ACTIVE, SOON_OVER, EXPIRED, REVOKED = "active", "soon_over", "expired", "revoked"
STATE_WORDS = {
    ACTIVE: _("Active"),
    SOON_OVER: _("Ends soon"),
    EXPIRED: _("Expired"),
    REVOKED: _("Revoked"),
}
TONES = {ACTIVE: "success", SOON_OVER: "warning", EXPIRED: "neutral", REVOKED: "error"}


def verbs_in_words(scopes: Mapping[str, Any], kind: str) -> str:
    """“Fetch, render”; “Everything” when nothing that its kind could do is left out."""
    verbs = verbs_of(scopes, kind)
    if verbs == verbs_of({}, kind):
        return gettext("Everything")
    listed = ", ".join(str(VERB_WORDS[verb]) for verb in VERBS if verb in verbs)
    return listed.capitalize() or gettext("Nothing")


def limits_in_words(scopes: Mapping[str, Any]) -> list[str]:
    """What it is limited to, a line for each dimension that is; no line means no limit."""
    said = [(name, scopes.get(f"{name}s")) for name in LIMIT_WORDS]
    return [_limit(name, words) for name, words in said if isinstance(words, list) and words]


def _limit(name: str, words: Sequence[str]) -> str:
    return str(LIMIT_WORDS[name] % {"names": first_few(words), "count": len(words)})


def state_of(expires_at: datetime, revoked_at: datetime | None, now: datetime) -> str:
    if revoked_at is not None:
        return REVOKED
    if expires_at <= now:
        return EXPIRED
    return SOON_OVER if expires_at - now <= SOON else ACTIVE


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
