"""Texts that describe API keys on pages: scopes, state and usage examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from core.text.lists import format_short_list
from personas.api_keys.scopes import (
    ACTIVATE,
    APPROVE,
    FETCH,
    MANAGE,
    OVERRIDE,
    READ,
    RENDER,
    VERBS,
    WRITE,
    ScopedKey,
    get_key_verbs,
)

# Actions ("verbs") to choose from in the form of a new key.
VERB_CHOICES = (
    (FETCH, _("Fetch prompts")),
    (RENDER, _("Render prompts")),
    (READ, _("Read records")),
    (WRITE, _("Write")),
    (APPROVE, _("Approve (admin keys only)")),
    (MANAGE, _("Manage (admin keys only)")),
    (OVERRIDE, _("Release without approval (admin keys only)")),
)
VERB_HELP = _(
    "“Render prompts” fetches a prompt with values for one call. With "
    "“Read records”, a bot gets no text that others wrote. With "
    "“Write”, a bot can propose memories, complete task steps and push files, "
    "and an admin key can edit what its creator can edit. “Manage” covers "
    "sources, keys and protected labels. Release without approval only in an "
    "emergency."
)
ACTIVATE_HELP = _(
    "Only for bots that you trust. Memories that the bot writes become active "
    "immediately, without approval. A bot that reads text from strangers can "
    "be tricked into storing it. Without this permission, the bot can only "
    "propose memories. Requires a bot key with “Write”."
)
# Labels of the actions in a comma-separated list, such as “Fetch, render”.
SCOPE_VERB_LABELS = {
    FETCH: _("fetch"),
    RENDER: _("render"),
    READ: _("read"),
    WRITE: _("write"),
    APPROVE: _("approve"),
    MANAGE: _("manage"),
    OVERRIDE: _("release without approval"),
    ACTIVATE: _("write active memories without approval"),
}
LIMIT_LABELS = {
    "agent": ngettext_lazy("Agent %(names)s", "Agents %(names)s", "count"),
    "channel": ngettext_lazy("Channel %(names)s", "Channels %(names)s", "count"),
    "label": ngettext_lazy("Label %(names)s", "Labels %(names)s", "count"),
}
EXPIRY_WARNING_PERIOD = timedelta(days=14)
ACTIVE, EXPIRING, EXPIRED, REVOKED = "active", "soon_over", "expired", "revoked"
STATE_LABELS = {
    ACTIVE: _("Active"),
    EXPIRING: _("Expires soon"),
    EXPIRED: _("Expired"),
    REVOKED: _("Revoked"),
}
STATE_TONES = {ACTIVE: "success", EXPIRING: "warning", EXPIRED: "neutral", REVOKED: "error"}


def describe_verbs(scopes: Mapping[str, Any], kind: str) -> str:
    """Return the actions that a key allows, such as “Fetch, render”.

    Return “Everything” if the key allows all actions that are possible for its kind.
    """
    verbs = get_key_verbs(scopes, kind)
    if verbs == get_key_verbs({}, kind):
        return gettext("Everything")
    listed = ", ".join(str(SCOPE_VERB_LABELS[verb]) for verb in VERBS if verb in verbs)
    return listed.capitalize() or gettext("Nothing")


def describe_limits(scopes: Mapping[str, Any]) -> list[str]:
    """Return one line for each dimension (agents, channels, labels) in which the scopes are limited."""
    limits = [(name, scopes.get(f"{name}s")) for name in LIMIT_LABELS]
    return [_describe_limit(name, values) for name, values in limits if isinstance(values, list) and values]


def _describe_limit(name: str, values: Sequence[str]) -> str:
    return str(LIMIT_LABELS[name] % {"names": format_short_list(values), "count": len(values)})


def get_key_state(expires_at: datetime, revoked_at: datetime | None, now: datetime) -> str:
    if revoked_at is not None:
        return REVOKED
    if expires_at <= now:
        return EXPIRED
    return EXPIRING if expires_at - now <= EXPIRY_WARNING_PERIOD else ACTIVE


KEY_ENV_VARIABLE = "DRAMATIS_KEY"
DEFAULT_LABEL = "production"


@dataclass(frozen=True)
class UsageExample:
    """Shell and Python examples of how to use an API key.

    Only `export` contains the secret; the other examples read it from the environment variable.
    """

    export: str
    curl: str
    python: str


def build_usage_example(url: str, secret: str) -> UsageExample:
    return UsageExample(
        export=f"export {KEY_ENV_VARIABLE}={secret}",
        curl=f'curl --fail-with-body -H "Authorization: Bearer ${KEY_ENV_VARIABLE}" "{url}"',
        python="\n".join(
            [
                "import json, os, urllib.request",
                "",
                f'url = "{url}"',
                f'headers = {{"Authorization": "Bearer " + os.environ["{KEY_ENV_VARIABLE}"]}}',
                "request = urllib.request.Request(url, headers=headers)",
                "print(json.load(urllib.request.urlopen(request)))",
            ]
        ),
    )


def build_example_url(public_url: str, key: ScopedKey, agent: str, channel: str) -> str:
    """Return a URL for the usage example: a prompt, or the list of agents if the key cannot fetch prompts."""
    if FETCH not in get_key_verbs(key.scopes, key.kind):
        return f"{public_url}/api/v1/agents"
    labels = key.scopes.get("labels") or [DEFAULT_LABEL]
    label = "" if DEFAULT_LABEL in labels else f"?label={labels[0]}"
    return f"{public_url}/api/v1/agents/{agent or 'AGENT'}/channels/{channel or 'CHANNEL'}/prompt{label}"
