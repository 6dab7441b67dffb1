"""Queries of a label move by API, compiled once: see `core.db.fast`.

A move reads these rows one after another. Without this, Django would spend half of its time on building the
SQL; `dev.py bench peers` measures moves.
"""

from collections.abc import Collection, Sequence

from django.db.models import QuerySet

from core.db.fast import CompiledQuery
from personas.models import Workspace
from prompts.models import AgentPrompt, LabelRule, PromptLabel, PromptVersion
from prompts.publishing.versions.selectors import HEAVY_COLUMNS, list_heavy_columns
from prompts.publishing.versions.timeline import select_latest_version


@CompiledQuery
def query_named_prompt(workspace: int, agent: str, channel: str) -> QuerySet[AgentPrompt]:
    rows = AgentPrompt.objects.in_workspace(workspace).filter(agent__slug=agent, channel__slug=channel)
    return select_latest_version(rows)


@CompiledQuery
def query_numbered_version(workspace: int, prompt: int, number: int) -> QuerySet[PromptVersion]:
    rows = PromptVersion.objects.in_workspace(workspace).filter(prompt=prompt, number=number)
    return rows.defer(*HEAVY_COLUMNS)


def find_prompt_label(prompt: AgentPrompt, label: str) -> PromptLabel | None:
    """Find a label of a prompt with its version, without the large columns of the version."""
    labels = query_current_labels(prompt.workspace_id, [prompt.pk])
    return next((row for row in labels if row.name == label), None)


@CompiledQuery
def query_current_labels(workspace: Workspace | int, prompts: Collection[int]) -> QuerySet[PromptLabel]:
    rows = PromptLabel.objects.in_workspace(workspace).filter(prompt__in=prompts)
    return rows.select_related("version").defer(*list_heavy_columns("version"))


@CompiledQuery
def query_locked_rows(workspace: Workspace | int, ids: Sequence[int]) -> QuerySet[AgentPrompt]:
    rows = AgentPrompt.objects.in_workspace(workspace).filter(pk__in=ids)
    return rows.select_related("agent", "channel").order_by("pk").select_for_update(of=("self",))


@CompiledQuery
def query_latest_rows(workspace: Workspace | int, ids: Sequence[int]) -> QuerySet[PromptVersion]:
    """The latest versions of these prompts, without their large columns."""
    prompts = AgentPrompt.objects.in_workspace(workspace).filter(pk__in=ids)
    versions = PromptVersion.objects.in_workspace(workspace).filter(pk__in=prompts.values("latest"))
    return versions.defer(*HEAVY_COLUMNS)


@CompiledQuery
def query_protections(workspace: Workspace | int, labels: Sequence[str]) -> QuerySet[LabelRule]:
    return LabelRule.objects.in_workspace(workspace).filter(name__in=labels, is_protected=True)
