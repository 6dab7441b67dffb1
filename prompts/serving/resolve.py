"""Resolve a prompt request to a version, or raise an error if the request is refused.

This takes several queries, so the result is cached. It runs only if the cache has no resolution.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import Any

from django.utils import timezone

from core.db.workspace_scope import all_workspaces, workspace_scope
from personas.api_keys.format import BOT, is_well_formed_key
from personas.api_keys.scopes import find_missing_scope
from personas.api_keys.selectors import filter_valid_keys
from personas.models import Agent, AgentChannel, Membership
from prompts.models import LATEST, PRODUCTION, AgentPrompt, LabelMove, MoveReason, PromptLabel, PromptVersion
from prompts.serving.cache import get_erasure_number
from prompts.serving.errors import (
    InvalidKey,
    LabelNotFound,
    NoVersion,
    OutOfScope,
    PromptNotFound,
    VersionErased,
)
from prompts.serving.request import (
    MAX_SLUG_LENGTH,
    Client,
    KeyClient,
    MemberClient,
    PromptRequest,
    RateLimitCheck,
    Resolution,
    is_slug,
)
from prompts.serving.warnings import ReportWarnings, load_report_warnings


def check_key_format(client: Client) -> None:
    """Raise InvalidKey if the secret does not have the format of a key. This needs no query."""
    if isinstance(client, KeyClient) and not is_well_formed_key(client.secret):
        raise InvalidKey


def resolve_request(
    client: Client, prompt_request: PromptRequest, check_rate_limit: RateLimitCheck
) -> Resolution:
    """Authenticate the client, check its scopes and resolve the label; raise if the request is refused.

    The rate limit is charged right after authentication, so that requests refused later count as well.
    """
    with all_workspaces():
        client_fields = authenticate_client(client)
    check_rate_limit(client_fields.get("key_id"), client_fields["workspace_id"])
    check_scopes(client_fields.get("scopes", {}), prompt_request)
    if not prompt_request.has_valid_slugs:
        raise PromptNotFound(describe_invalid_slug(prompt_request))
    with workspace_scope(client_fields["workspace_id"]):
        return build_resolution(client_fields, prompt_request)


def check_scopes(scopes: Mapping[str, Any], prompt_request: PromptRequest) -> None:
    """Raise OutOfScope, which names what the key lacks. Agents outside of its scopes are not looked up."""
    agent, channel, label = prompt_request.agent, prompt_request.channel, prompt_request.label
    missing = find_missing_scope(scopes, prompt_request.action, agent, channel, label)
    if missing == "verbs":
        verb = prompt_request.action
        raise OutOfScope(f"This requires the verb “{verb}”, which this key does not have.", verb)
    if missing:
        name = {"agents": agent, "channels": channel, "labels": label}[missing]
        raise OutOfScope(
            f"This key is limited to specific {missing}. “{name[:MAX_SLUG_LENGTH]}” is not one of them."
        )


def build_resolution(client_fields: dict[str, Any], prompt_request: PromptRequest) -> Resolution:
    workspace_id: int = client_fields["workspace_id"]
    # Read the erasure counter before the version: an erasure in between is then detected as a new one.
    erasures = get_erasure_number(workspace_id)
    scopes = client_fields.get("scopes", {})
    prompt = find_requested_prompt(workspace_id, prompt_request, scopes)
    if client_fields.get("is_bot") and prompt_request.label == LATEST:
        check_unreleased_access(prompt, scopes)
    version_id = get_version_id(prompt, prompt_request, scopes)
    return Resolution(
        prompt_id=prompt.pk,
        agent_id=prompt.agent_id,
        channel_id=prompt.channel_id,
        version_id=version_id,
        erasures=erasures,
        report="" if prompt_request.has_fixed_version else prompt.report,
        current_warnings=None if prompt_request.has_fixed_version else load_current_warnings(prompt),
        is_latest=version_id == prompt.latest_id,
        release_policy=prompt.agent.release_policy,
        agent=prompt_request.agent,
        channel=prompt_request.channel,
        label=prompt_request.label,
        **client_fields,
    )


def load_current_warnings(prompt: AgentPrompt) -> ReportWarnings | None:
    return load_report_warnings(prompt.workspace_id, prompt.report) if prompt.report else None


def authenticate_client(client: Client) -> dict[str, Any]:
    return authenticate_key(client) if isinstance(client, KeyClient) else authenticate_member(client)


def authenticate_key(client: KeyClient) -> dict[str, Any]:
    """Find the key in all workspaces and return the fields of a Resolution that it determines."""
    key = filter_valid_keys(client.digest).first()
    if key is None or (key.kind != BOT and not is_member(key.workspace_id, key.created_by_id)):
        raise InvalidKey
    return {
        "workspace_id": key.workspace_id,
        "key_id": key.pk,
        "is_bot": key.kind == BOT,
        "reader_label": key.name,
        "digest": key.digest,
        "scopes": key.scopes,
    }


def authenticate_member(member: MemberClient) -> dict[str, Any]:
    if not is_member(member.workspace.pk, member.user.pk):
        raise PromptNotFound
    return {
        "workspace_id": member.workspace.pk,
        "user_id": member.user.pk,
        "reader_label": member.user.email,
    }


def is_member(workspace_id: int, user_id: int | None) -> bool:
    if user_id is None:
        return False
    rows = Membership.objects.in_workspace(workspace_id)
    return rows.filter(user_id=user_id, user__is_active=True).exists()


def find_requested_prompt(
    workspace_id: int, prompt_request: PromptRequest, scopes: Mapping[str, Any]
) -> AgentPrompt:
    """Find the requested prompt. It must be live, unless the request is for a time in the past."""
    rows = AgentPrompt.objects.in_workspace(workspace_id)
    rows = rows.filter(agent__slug=prompt_request.agent, channel__slug=prompt_request.channel)
    if prompt_request.at is None:
        rows = rows.filter(is_active=True, agent__archived_at=None, channel__archived_at=None)
    prompt = rows.select_related("agent").first()
    if prompt is None:
        raise PromptNotFound(describe_missing_prompt(workspace_id, prompt_request, scopes))
    return prompt


def check_unreleased_access(prompt: AgentPrompt, scopes: Mapping[str, Any]) -> None:
    """Raise OutOfScope if releases of the agent are reviewed and the key is not meant for unreleased text.

    The label `latest` follows every build, so under a review it can point to a version that nobody approved.
    """
    if prompt.is_reviewed and LATEST not in scopes.get("labels", []):
        raise OutOfScope(
            "Releases of this agent are reviewed, and “latest” is not a released version. A bot key gets it "
            "only if it is limited to labels that include “latest”."
        )


def get_version_id(prompt: AgentPrompt, prompt_request: PromptRequest, scopes: Mapping[str, Any]) -> int:
    if prompt_request.at is not None:
        version_id = get_version_id_at(prompt, prompt_request)
        check_version_number(prompt, prompt_request, version_id)
        return version_id
    if prompt_request.version is not None:
        return get_numbered_version_id(prompt, prompt_request.label, prompt_request.version)
    return get_current_version_id(prompt, prompt_request.label, scopes)


def get_numbered_version_id(prompt: AgentPrompt, label: str, number: int) -> int:
    """Return the id of the version with this number, if the label points to it or has pointed to it.

    So a key that is limited to a label gets only what this label has released. Every version has been the
    latest.
    """
    versions = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, number=number)
    if label != LATEST:
        moves = LabelMove.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, label=label)
        versions = versions.filter(pk__in=moves.values("version"))
    version_id = versions.values_list("pk", flat=True).first()
    if version_id is None:
        raise PromptNotFound(f"The label “{label}” has never pointed to version {number} of this prompt.")
    return version_id


def check_version_number(prompt: AgentPrompt, prompt_request: PromptRequest, version_id: int) -> None:
    """Raise PromptNotFound unless the label pointed to the requested version at the requested time."""
    if prompt_request.version is None:
        return
    versions = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(pk=version_id)
    number = versions.values_list("number", flat=True).get()
    if number != prompt_request.version:
        raise PromptNotFound(
            f"The label “{prompt_request.label}” pointed to version {number} at that time, "
            f"not to version {prompt_request.version}."
        )


def get_current_version_id(prompt: AgentPrompt, label: str, scopes: Mapping[str, Any]) -> int:
    if label == LATEST:
        if prompt.latest_id is None:
            raise NoVersion
        return prompt.latest_id
    rows = PromptLabel.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, name=label)
    version_id = rows.values_list("version_id", flat=True).first()
    if version_id is None:
        check_label_removal(prompt, label)
        # Production exists for every prompt, but may not point to a version yet. Other labels without a
        # version do not exist.
        if label == PRODUCTION:
            raise NoVersion
        raise LabelNotFound(describe_missing_label(prompt, label, scopes))
    return version_id


def check_label_removal(prompt: AgentPrompt, label: str) -> None:
    """Raise VersionErased if an erasure removed the label, because its version could not be rebuilt."""
    moves = LabelMove.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, label=label)
    if moves.order_by("-sequence").values_list("reason", flat=True).first() == MoveReason.ERASURE:
        raise VersionErased(
            f"The label “{label}” was removed: its version contained text that has been erased, and could "
            "not be rebuilt without it. Release a newer version of the prompt."
        )


def get_version_id_at(prompt: AgentPrompt, prompt_request: PromptRequest) -> int:
    """Return the id of the version that the label pointed to at the requested time."""
    at = prompt_request.at
    if at is None or at.tzinfo is None or at > timezone.now():
        raise NoVersion("Send a time in the past, with a UTC offset.")
    # Convert to UTC, because databases do not support every UTC offset.
    at = at.astimezone(UTC)
    if prompt_request.label == LATEST:
        versions = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(
            prompt=prompt, created_at__lte=at
        )
        version_id = versions.order_by("-created_at", "-number").values_list("pk", flat=True).first()
    else:
        moves = LabelMove.objects.in_workspace(prompt.workspace_id).filter(
            prompt=prompt, label=prompt_request.label, at__lte=at
        )
        version_id = moves.order_by("-at", "-sequence").values_list("version_id", flat=True).first()
    if version_id is None:
        raise NoVersion("There was no version at that time.")
    return version_id


# --- messages ------------------------------------------------------------------------------------------
# The messages tell which of agent, channel and label is missing. The key's scopes were checked before, so the
# client may fetch the agent. Names outside of these scopes, and of other workspaces, are not listed.

MAX_NAMES = 20


def describe_invalid_slug(prompt_request: PromptRequest) -> str:
    names = {"agent": prompt_request.agent, "channel": prompt_request.channel, "label": prompt_request.label}
    kind, name = next((kind, name) for kind, name in names.items() if not is_slug(name))
    return f"No {kind} “{name[:MAX_SLUG_LENGTH]}”. Slugs consist of lowercase letters, digits and hyphens."


def describe_missing_prompt(
    workspace_id: int, prompt_request: PromptRequest, scopes: Mapping[str, Any]
) -> str:
    agent, channel = prompt_request.agent, prompt_request.channel
    agents = Agent.objects.in_workspace(workspace_id).filter(slug=agent, archived_at=None)
    if not agents.exists():
        return f"No agent “{agent}”."
    rows = AgentChannel.objects.in_workspace(workspace_id).filter(
        agent__slug=agent, channel__archived_at=None
    )
    channels = list(rows.order_by("channel__slug").values_list("channel__slug", flat=True))
    if channel in channels:
        return f"The prompt of “{agent}” on “{channel}” has not been built yet."
    return (
        f"The agent “{agent}” is not on the channel “{channel}”. {list_names(channels, scopes, 'channels')}"
    )


def describe_missing_label(prompt: AgentPrompt, label: str, scopes: Mapping[str, Any]) -> str:
    rows = PromptLabel.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    labels = [*([LATEST] if prompt.latest_id else []), *rows.order_by("name").values_list("name", flat=True)]
    return f"This prompt has no label “{label}”. {list_names(labels, scopes, 'labels')}"


def list_names(names: Iterable[str], scopes: Mapping[str, Any], dimension: str) -> str:
    """List the names within the scopes of the key."""
    visible = [name for name in names if name in scopes.get(dimension, [name])]
    if not visible:
        return f"It has no {dimension}." if dimension not in scopes else f"It has no {dimension} of this key."
    more = " …" if len(visible) > MAX_NAMES else "."
    return f"It has: {', '.join(visible[:MAX_NAMES])}{more}"
