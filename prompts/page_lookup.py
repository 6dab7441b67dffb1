"""Prompts, versions and releases by what stands in an address; what is not in the workspace is not there."""

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404

from personas.agents.selectors import agent_rows
from personas.models import Agent
from personas.tenancy.middleware import WorkspaceRequest
from prompts.models import AgentPrompt, PromptVersion, Release
from prompts.versions.timeline import with_latest

# PostgreSQL and SQLite both refuse to compare with larger ids.
LARGEST = 2**31 - 1


def found_agent(request: WorkspaceRequest, slug: str) -> Agent:
    return get_object_or_404(agent_rows(request.workspace), slug=slug)


def found_prompt(request: WorkspaceRequest, key: int) -> AgentPrompt:
    rows = AgentPrompt.objects.in_workspace(request.workspace)
    # Every page of an agent begins with who it is.
    whole = with_latest(rows).select_related("agent__identity", "agent__parent")
    return get_object_or_404(whole, pk=bounded(key))


def found_version(
    prompt: AgentPrompt, number: int, rows: QuerySet[PromptVersion] | None = None
) -> PromptVersion:
    """Of all versions of the prompt, unless the caller has asked for more about them."""
    known = all_versions(prompt) if rows is None else rows
    version: PromptVersion = get_object_or_404(known, number=bounded(number))
    version.prompt = prompt
    return version


def all_versions(prompt: AgentPrompt) -> QuerySet[PromptVersion]:
    return PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)


def found_release(request: WorkspaceRequest, number: int) -> Release:
    rows = Release.objects.in_workspace(request.workspace)
    return get_object_or_404(rows.select_related("workspace"), number=bounded(number))


def bounded(number: int) -> int:
    if number > LARGEST:
        raise Http404("No number is as large.")
    return number
