"""Load the rows that a build starts from, with queries that are compiled once: see `core.db.fast`."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from core.db.fast import CompiledQuery, fetch_together
from personas.models import Workspace
from prompts.models import AgentPrompt, BuildCause, PromptLabel, PromptVersion
from prompts.publishing.inputs import LoadedRows
from prompts.publishing.versions.selectors import list_heavy_columns

# Keyed by agent id and channel id.
LockedPrompts = dict[tuple[int, int], AgentPrompt]
# By agent id: the causes in the database, and new ones that are never stored there.
PendingCauses = dict[int, list[BuildCause]]


@CompiledQuery
def query_latest_versions(workspace: Workspace | int, agent_ids: Sequence[int]) -> QuerySet[PromptVersion]:
    prompts = AgentPrompt.objects.in_workspace(workspace).filter(agent__in=agent_ids)
    rows = PromptVersion.objects.in_workspace(workspace).filter(pk__in=prompts.values("latest"))
    return rows.only("digest", "number", "lockfile", "prompt_id", "workspace_id")


@CompiledQuery
def query_agent_labels(workspace: Workspace | int, agent_ids: Sequence[int]) -> QuerySet[PromptLabel]:
    rows = PromptLabel.objects.in_workspace(workspace).filter(prompt__agent__in=agent_ids)
    return rows.select_related("version").defer(*list_heavy_columns("version"))


@CompiledQuery
def query_locked_prompts(workspace: Workspace | int, agent_ids: Sequence[int]) -> QuerySet[AgentPrompt]:
    """Lock the prompts in primary key order, so that concurrent builds cannot deadlock."""
    rows = AgentPrompt.objects.in_workspace(workspace).filter(agent__in=agent_ids)
    return rows.select_related("agent", "channel").order_by("pk").select_for_update(of=("self",))


@CompiledQuery
def query_pending_causes(workspace: Workspace | int, agent_ids: Sequence[int]) -> QuerySet[BuildCause]:
    return BuildCause.objects.in_workspace(workspace).filter(agent__in=agent_ids).order_by("pk")


@dataclass
class BuildRows:
    """The rows that a build of some agents starts from. The prompts are locked."""

    prompts: LockedPrompts
    causes: PendingCauses
    latest: list[PromptVersion]
    labels: list[PromptLabel]
    loaded: LoadedRows


def lock_and_load(workspace: Workspace | int, agent_ids: Sequence[int]) -> BuildRows:
    """Lock the prompts of the agents and load what they are built from, in one round trip where possible.

    The order matters: each query sees what was committed before it. The prompts are locked first, so the
    versions and labels after that are the current ones. The causes are loaded before the records: a change
    committed in between is built now or later, because its cause is not deleted.
    """
    loaded = LoadedRows(workspace, agent_ids)
    queries = (query_locked_prompts, query_pending_causes, query_latest_versions, query_agent_labels)
    bound = [query.bind(workspace, agent_ids) for query in queries]
    locked, pending, latest, labels, *inputs = fetch_together([*bound, *loaded.list_queries()])
    loaded.rows = loaded.name_results(inputs)
    causes: PendingCauses = defaultdict(list)
    for cause in pending:
        causes[cause.agent_id].append(cause)
    prompts = {(row.agent_id, row.channel_id): row for row in locked}
    return BuildRows(prompts, causes, latest, labels, loaded)
