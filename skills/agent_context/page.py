"""What the context page of one agent shows: who chose what, what it is given and what waits."""

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
    """Who decided what an agent reads and where it works; None means nobody has."""

    row: AgentContext | None = None
    chosen_by: Agent | None = None
    directory: str = ""
    directory_of: Agent | None = None

    @property
    def why_nothing(self) -> str:
        """Why the agent reads no files, when it does not."""
        if self.row is None:
            return _("Nobody has chosen a source for it yet.")
        if self.row.source is None:
            return _("It was decided that it reads no files.")
        if self.row.source.is_archived:
            return _("Its source “%(source)s” is archived.") % {"source": self.row.source}
        return _("Its rule set is not known any more.")


def get_context_choice(agent: Agent, known: AgentLineage | None = None) -> ContextChoice:
    """By whom the agent's outlook was decided: itself, or the nearest one above it."""
    known = known or load_agent_lineage(agent)
    line, choices = list(known.line.values()), known.choices
    chooser = next((one for one in line if one.pk in choices), None)
    between = line[: line.index(chooser) + 1] if chooser else [agent]
    worker = next((one for one in between if one.working_directory), None)
    return ContextChoice(
        choices[chooser.pk] if chooser else None,
        chooser,
        worker.working_directory if worker else "",
        worker,
    )


def get_context_and_pending(
    agent: Agent, shelf: AgentContextLoader | None = None
) -> tuple[EffectiveContext, list[ContextFile]]:
    """What the agent is given, and what it would be given if someone agreed to it."""
    shelf = shelf or AgentContextLoader(agent, is_whole=True)
    found = shelf.found_for(shelf.outlook) if shelf.outlook else []
    by_rule = [file for kind, file in found if kind != "skill" or file.reach == Reach.FOUND]
    waiting = [file for file in [*by_rule, *shelf.offered] if file.in_force_id is None]
    return shelf.given(agent), [file for file in waiting if file.state in PENDING_STATES]


def get_context_fingerprint(agent: Agent, outlook: SourceReader | None) -> list[Any]:
    """A few figures that differ whenever the page does; cheap enough to be asked every two seconds."""
    links = FileAgent.objects.in_workspace(agent.workspace_id).filter(file=OuterRef("pk"), agent=agent)
    rows = ContextFile.objects.in_workspace(agent.workspace_id).order_by().annotate(is_mine=Exists(links))
    skills = Q(file_kind="skill") & ~Q(reach=Reach.FOUND)
    shown = rows.filter(Q(source=outlook.source) | skills if outlook else skills)
    files = shown.values_list("state", "reach", "is_mine").annotate(
        Count("pk"), Sum("pk"), Sum("newest_id"), Sum("in_force_id"), Max("changed_at")
    )
    written = Skill.objects.in_workspace(agent.workspace_id).filter(archived_at=None)
    return [
        get_source_reader_key(outlook),
        *files.order_by("state", "reach", "is_mine"),
        written.aggregate(Count("pk"), Sum("pk"), Sum("revision")),
    ]


def get_source_reader_key(outlook: SourceReader | None) -> tuple[Any, ...]:
    if outlook is None:
        return ()
    return (outlook.source.pk, outlook.source.label, repr(outlook.harness), outlook.working_directory)
