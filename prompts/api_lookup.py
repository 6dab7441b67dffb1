"""Prompts and versions that a key may know of; what lies outside of its scopes is not there."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404

from personas.api.authentication import Caller
from personas.api.exception_handler import invalid
from personas.api.operations import Call
from personas.api.problems import FieldError, Problem, ProblemError
from personas.models import Agent
from prompts.models import AgentPrompt, PromptVersion
from prompts.versions.timeline import with_latest

# Columns of numbers have 32 bits, those of ids 64.
LARGEST_NUMBER, LARGEST_ID = 2**31 - 1, 2**63 - 1


def visible_prompts(caller: Caller) -> QuerySet[AgentPrompt]:
    """With agent, channel and the light columns of the latest version."""
    rows = AgentPrompt.objects.in_workspace(caller.workspace)
    scopes: dict[str, Any] = caller.key.scopes
    if "agents" in scopes:
        rows = rows.filter(agent__slug__in=scopes["agents"])
    if "channels" in scopes:
        rows = rows.filter(channel__slug__in=scopes["channels"])
    return with_latest(rows)


def is_limited(caller: Caller) -> bool:
    """Whether there are prompts that this key may not know of."""
    return "agents" in caller.key.scopes or "channels" in caller.key.scopes


def prompt_ids(caller: Caller) -> list[int]:
    return list(visible_prompts(caller).values_list("pk", flat=True))


def found_agent(call: Call, slug: str) -> Agent:
    row = Agent.objects.in_workspace(call.workspace).filter(slug=slug).first()
    if row is None or not call.caller.may_touch(slug):
        raise Http404
    return row


def found_prompt(call: Call, agent: str, channel: str) -> AgentPrompt:
    prompt = visible_prompts(call.caller).filter(agent__slug=agent, channel__slug=channel).first()
    if prompt is None:
        raise Http404
    return prompt


def versions_in(prompt: AgentPrompt) -> QuerySet[PromptVersion]:
    return PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)


def named_version(prompt: AgentPrompt, name: int | str, pointer: str) -> PromptVersion:
    """By number or digest; of the versions that share a digest the newest, for their words are the same."""
    rows = versions_in(prompt).defer("segments", "sizes", "lockfile", "causes").order_by("-number")
    known = {"number": name} if isinstance(name, int) else {"digest": name}
    version = rows.filter(**known).first()
    if version is None:
        raise ProblemError(invalid([FieldError("This prompt has no such version.", pointer)]))
    version.prompt = prompt
    return version


def refuse_label(call: Call, label: str) -> None:
    """Keys may be limited to some labels."""
    if label not in call.caller.key.scopes.get("labels", [label]):
        raise ProblemError(Problem(403, "out_of_scope", "This key is limited to other labels."))


def refuse_limited(call: Call) -> None:
    """What concerns the whole workspace is not for keys that are limited to a part of it."""
    if is_limited(call.caller):
        raise ProblemError(Problem(403, "out_of_scope", "This key is limited to some agents or channels."))


def bounded(number: int, most: int = LARGEST_NUMBER) -> int:
    if not 0 < number <= most:
        raise Http404
    return number
