"""Look up the objects that page URLs refer to. An object outside the request's workspace gives a 404."""

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404

from personas.agents.selectors import list_agents_with_parts
from personas.models import Agent
from personas.tenancy.middleware import WorkspaceRequest
from prompts.models import AgentPrompt, PromptVersion, Release
from prompts.publishing.versions.timeline import select_latest_version

# Largest value of an integer column. A query with a larger number raises a database error.
MAX_URL_NUMBER = 2**31 - 1


def get_agent_or_404(request: WorkspaceRequest, slug: str) -> Agent:
    return get_object_or_404(list_agents_with_parts(request.workspace), slug=slug)


def get_prompt_or_404(request: WorkspaceRequest, key: int) -> AgentPrompt:
    rows = AgentPrompt.objects.in_workspace(request.workspace)
    # The header of every agent page shows identity and parent.
    rows = select_latest_version(rows).select_related("agent__identity", "agent__parent")
    return get_object_or_404(rows, pk=check_url_number(key))


def get_version_or_404(
    prompt: AgentPrompt, number: int, rows: QuerySet[PromptVersion] | None = None
) -> PromptVersion:
    """Return the version of the prompt with this number.

    `rows` replaces the default queryset, for example to join more tables.
    """
    versions = list_all_versions(prompt) if rows is None else rows
    version: PromptVersion = get_object_or_404(versions, number=check_url_number(number))
    version.prompt = prompt
    return version


def list_all_versions(prompt: AgentPrompt) -> QuerySet[PromptVersion]:
    return PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)


def get_release_or_404(request: WorkspaceRequest, number: int) -> Release:
    rows = Release.objects.in_workspace(request.workspace)
    return get_object_or_404(rows.select_related("workspace"), number=check_url_number(number))


def check_url_number(number: int) -> int:
    if number > MAX_URL_NUMBER:
        raise Http404("The number is too large.")
    return number
