"""Look up agents, prompts and versions for the REST API.

An agent or prompt outside the scopes of the API key gives a 404, as if it did not exist.
"""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404

from personas.api.authentication import ApiClient
from personas.api.exception_handler import RecordNotFound, validation_problem
from personas.api.key_limits import is_within_limit, out_of_scope_error
from personas.api.operations import ApiRequest
from personas.api.problems import FieldError, ProblemError
from personas.models import Agent
from prompts.models import AgentPrompt, PromptVersion
from prompts.publishing.labels.move_queries import query_named_prompt, query_numbered_version
from prompts.publishing.versions.selectors import HEAVY_COLUMNS
from prompts.publishing.versions.timeline import select_latest_version

# Largest values of 32-bit number columns and 64-bit id columns.
MAX_NUMBER, MAX_ID = 2**31 - 1, 2**63 - 1


def list_visible_prompts(caller: ApiClient) -> QuerySet[AgentPrompt]:
    """List the prompts within the key's scopes.

    Agent, channel and latest version are joined, without the large columns of the version.
    """
    rows = AgentPrompt.objects.in_workspace(caller.workspace)
    scopes: dict[str, Any] = caller.key.scopes
    if "agents" in scopes:
        rows = rows.filter(agent__slug__in=scopes["agents"])
    if "channels" in scopes:
        rows = rows.filter(channel__slug__in=scopes["channels"])
    return select_latest_version(rows)


def is_scope_limited(caller: ApiClient) -> bool:
    """Whether the key is limited to some agents or channels."""
    return "agents" in caller.key.scopes or "channels" in caller.key.scopes


def list_visible_prompt_ids(caller: ApiClient) -> list[int]:
    return list(list_visible_prompts(caller).values_list("pk", flat=True))


def get_visible_agent(call: ApiRequest, slug: str) -> Agent:
    agent = Agent.objects.in_workspace(call.workspace).filter(slug=slug).first()
    if agent is None or not call.caller.can_access_agent(slug):
        raise RecordNotFound(f"No agent “{slug}”{describe_limits_of(call.caller)}.")
    return agent


def describe_limits_of(caller: ApiClient) -> str:
    return " within the limits of this key" if caller.is_limited else ""


def get_visible_prompt(call: ApiRequest, agent: str, channel: str) -> AgentPrompt:
    if is_scope_limited(call.caller):
        rows = list_visible_prompts(call.caller).filter(agent__slug=agent, channel__slug=channel)
        prompts = list(rows[:1])
    else:
        prompts = query_named_prompt(call.workspace.pk, agent, channel)
    if not prompts:
        get_visible_agent(call, agent)
        limits = describe_limits_of(call.caller)
        raise RecordNotFound(f"The agent “{agent}” has no prompt on the channel “{channel}”{limits}.")
    return prompts[0]


def list_prompt_versions(prompt: AgentPrompt) -> QuerySet[PromptVersion]:
    return PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)


def get_named_version(prompt: AgentPrompt, name: float | str, pointer: str) -> PromptVersion:
    """Return the version with this number or digest. In JSON, 1.0 is an integer too.

    Versions with equal text have equal digests; of these, the newest is returned.
    """
    name = int(name) if isinstance(name, float) else name
    if isinstance(name, int):
        versions = query_numbered_version(prompt.workspace_id, prompt.pk, name)
    else:
        equal = list_prompt_versions(prompt).filter(digest=name).defer(*HEAVY_COLUMNS)
        versions = list(equal.order_by("-number")[:1])
    if not versions:
        raise ProblemError(validation_problem([FieldError("Version not found.", pointer)]))
    versions[0].prompt = prompt
    return versions[0]


def check_label_scope(call: ApiRequest, label: str) -> None:
    """Raise 403 if the key's scopes do not include the label."""
    if not can_see_label(call.caller, label):
        raise out_of_scope_error("labels")


def can_see_label(caller: ApiClient, label: str) -> bool:
    return is_within_limit(caller, "labels", label)


def check_number_bounds(number: int, maximum: int = MAX_NUMBER) -> int:
    if not 0 < number <= maximum:
        raise Http404
    return number
