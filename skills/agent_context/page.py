"""Data for the context page of one agent: the chosen source, the effective files, the pending files."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q, Sum
from django.utils.translation import gettext as _

from personas.models import Agent
from skills.agent_context.effective import AgentContextLoader, EffectiveContext
from skills.models import AgentContext, ContextFile, FileAgent, FileState, Reach, Skill
from skills.sources.readers import AgentLineage, SourceReader, load_agent_lineage

PENDING_STATES = (FileState.NEW, FileState.CHANGED)


@dataclass(frozen=True)
class ContextChoice:
    """The effective source and working directory of an agent, each with the agent that has set it.

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
            return _("Nobody has chosen a source for it yet.")
        if self.row.source is None:
            return _("It was decided that it reads no files.")
        if self.row.source.is_archived:
            return _("Its source “%(source)s” is archived.") % {"source": self.row.source}
        return _("Its rule set is not known any more.")


def get_context_choice(agent: Agent, lineage: AgentLineage | None = None) -> ContextChoice:
    """Return the source and working directory set on the agent or, if unset, on its nearest ancestor.

    A working directory is not inherited from beyond the agent whose source is used.
    """
    lineage = lineage or load_agent_lineage(agent)
    agents, choices = list(lineage.line.values()), lineage.choices
    chooser = next((candidate for candidate in agents if candidate.pk in choices), None)
    inheriting = agents[: agents.index(chooser) + 1] if chooser else [agent]
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
    by_rule = [file for kind, file in matches if kind != "skill" or file.reach == Reach.FOUND]
    unused = [file for file in [*by_rule, *loader.offered_files] if file.in_force_id is None]
    return loader.get_context(agent), [file for file in unused if file.state in PENDING_STATES]


def get_context_fingerprint(agent: Agent, reader: SourceReader | None) -> list[Any]:
    """Return database aggregates that change whenever the content of the context page changes.

    They are cheap enough to be computed for every poll.
    """
    links = FileAgent.objects.in_workspace(agent.workspace_id).filter(file=OuterRef("pk"), agent=agent)
    rows = ContextFile.objects.in_workspace(agent.workspace_id).order_by().annotate(is_mine=Exists(links))
    skills = Q(file_kind="skill") & ~Q(reach=Reach.FOUND)
    relevant = rows.filter(Q(source=reader.source) | skills if reader else skills)
    files = relevant.values_list("state", "reach", "is_mine").annotate(
        Count("pk"), Sum("pk"), Sum("newest_id"), Sum("in_force_id"), Max("changed_at")
    )
    skill_records = Skill.objects.in_workspace(agent.workspace_id).filter(archived_at=None)
    return [
        get_source_reader_key(reader),
        *files.order_by("state", "reach", "is_mine"),
        skill_records.aggregate(Count("pk"), Sum("pk"), Sum("revision")),
    ]


def get_source_reader_key(reader: SourceReader | None) -> tuple[Any, ...]:
    if reader is None:
        return ()
    return (
        reader.source.pk,
        reader.source.label,
        repr(reader.harness),
        reader.working_directory,
        reader.directory_problem,
    )
