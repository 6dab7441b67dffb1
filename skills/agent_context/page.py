"""Data for the context page of one agent: the chosen sources, the effective files, the pending files."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, Sum
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.models import Agent
from skills.agent_context.effective import AgentContextLoader, EffectiveContext
from skills.agent_context.services import list_sources_to_refresh
from skills.models import AgentContext, AssignedTo, ContextFile, FileAgent, FileStatus, Skill
from skills.refresh.runs import request_refresh
from skills.sources.readers import AgentLineage, ContextReader, list_active_uses, load_agent_lineage
from skills.tasks import enqueue_refresh_run

PENDING_STATUSES = (FileStatus.NEW, FileStatus.CHANGED)


@dataclass(frozen=True)
class ContextChoice:
    """The effective sources and working directory of an agent, each with the agent that has set it.

    The agent that has set a value is the agent itself or an ancestor; None if the value is not set.
    """

    row: AgentContext | None = None
    chosen_by: Agent | None = None
    directory: str = ""
    directory_owner: Agent | None = None

    @property
    def no_files_reason(self) -> str:
        """The reason why the agent reads no files. Use it only for an agent that reads none."""
        if self.row is None:
            return _("No source selected yet.")
        sources = [use.source for use in self.row.uses.all()]
        if not sources:
            return _("This agent is set to read no files.")
        if all(source.is_archived for source in sources):
            return _("This agent's source “%(source)s” is archived.") % {"source": sources[-1]}
        return _("This agent's discovery rules no longer exist.")


def get_context_choice(agent: Agent, lineage: AgentLineage | None = None) -> ContextChoice:
    """Return the source and working directory set on the agent or, if unset, on its nearest ancestor.

    A working directory is not inherited from beyond the agent whose sources are used.
    """
    lineage = lineage or load_agent_lineage(agent)
    agents, choices = list(lineage.line.values()), lineage.choices
    chooser = next((candidate for candidate in agents if candidate.pk in choices), None)
    has_sources = chooser is not None and list_active_uses(choices[chooser.pk])
    inheriting = agents[: agents.index(chooser) + 1] if chooser and has_sources else agents
    directory_owner = next((candidate for candidate in inheriting if candidate.working_directory), None)
    return ContextChoice(
        choices[chooser.pk] if chooser else None,
        chooser,
        directory_owner.working_directory if directory_owner else "",
        directory_owner,
    )


def get_context_and_pending(
    agent: Agent, loader: AgentContextLoader | None = None
) -> tuple[EffectiveContext, list[ContextFile]]:
    """Return the effective context and the pending files.

    Pending are new or changed files that prompts do not use yet and that become effective when approved.
    """
    loader = loader or AgentContextLoader(agent, has_contents=True)
    matches = loader.list_matched_files(loader.reader) if loader.reader else []
    by_rule = [
        file for kind, file in matches if kind != "skill" or file.assigned_to == AssignedTo.WHERE_FOUND
    ]
    unused = [file for file in [*by_rule, *loader.offered_files] if file.active_id is None]
    return loader.get_context(agent), [file for file in unused if file.status in PENDING_STATUSES]


def request_context_refresh(row: AgentContext, *, by: Actor) -> None:
    """Request a refresh of the sources in which the settings of an agent add paths to search."""
    for source in list_sources_to_refresh(row):
        enqueue_refresh_run(request_refresh(source, cause="edited", by=by))


def get_context_fingerprint(agent: Agent, reader: ContextReader | None) -> list[Any]:
    """Return database aggregates that change whenever the content of the context page changes.

    They are cheap enough to be computed for every poll.
    """
    links = FileAgent.objects.in_workspace(agent.workspace_id).filter(file=OuterRef("pk"), agent=agent)
    rows = ContextFile.objects.in_workspace(agent.workspace_id).order_by().annotate(is_mine=Exists(links))
    skills = Q(file_kind="skill") & ~Q(assigned_to=AssignedTo.WHERE_FOUND)
    relevant = rows.filter(Q(source__in=reader.source_ids) | skills if reader else skills)
    files = relevant.values_list("status", "assigned_to", "is_mine").annotate(
        Count("pk"), Sum("pk"), Sum("latest_id"), Sum("active_id"), Max("changed_at")
    )
    skill_records = Skill.objects.in_workspace(agent.workspace_id).filter(archived_at=None)
    return [
        get_source_reader_key(reader),
        *files.order_by("status", "assigned_to", "is_mine"),
        skill_records.aggregate(Count("pk"), Sum("pk"), Sum("revision")),
    ]


def get_source_reader_key(reader: ContextReader | None) -> tuple[Any, ...]:
    if reader is None:
        return ()
    sources = [(use.source_id, use.source.name, use.bot_location) for use in reader.uses]
    return (sources, repr(reader.harness), reader.searched_sources, reader.directory)
