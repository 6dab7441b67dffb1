"""What the list of skills does to many at once, and how it leaves as a file."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from personas.errors import DomainError
from personas.models import Agent, Workspace
from personas.records.bulk_views import ARCHIVE_ACTION, RESTORE_ACTION, BulkAction, parse_row_ids
from personas.selectors import list_agents
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.export import CHUNK_SIZE, ExportColumn
from personas.ui.responses import get_back_url
from skills.library.file_views import SkillFilePages
from skills.library.list import SkillEntry, SkillListItem, load_skill_items
from skills.library.services import assign_skill, assign_skill_to_all, unassign_skill
from skills.models import Skill

ASSIGN = BulkAction(
    "give", gettext_lazy("Give to agent…"), gettext_lazy("Given"), states=("", "trusted"), needs_agent=True
)
UNASSIGN = BulkAction(
    "take",
    gettext_lazy("Take from agent…"),
    gettext_lazy("Taken back"),
    states=("", "trusted"),
    needs_agent=True,
)
ASSIGN_ALL = BulkAction(
    "give_all", gettext_lazy("Give to all"), gettext_lazy("Given to all agents"), states=("", "trusted")
)
EXPORT_COLUMNS = [
    ExportColumn("name", lambda listed: listed.title),
    ExportColumn("description", lambda listed: listed.description),
    ExportColumn("source", lambda listed: listed.file.source.label if listed.file else ""),
    ExportColumn("path", lambda listed: listed.file.path if listed.file else ""),
    ExportColumn("state", lambda listed: listed.state),
    ExportColumn("for_all_agents", lambda listed: listed.is_for_all),
    ExportColumn("agents", lambda listed: listed.agent_count),
]


class SkillBulkPages(SkillFilePages):
    """Skills that are written here, given and taken back, archived and restored."""

    state_filter = "state"
    bulk_actions = (
        ASSIGN,
        UNASSIGN,
        ASSIGN_ALL,
        replace(ARCHIVE_ACTION, states=("", "trusted")),
        replace(RESTORE_ACTION, states=("aside",)),
    )

    def apply_give(self, skill: Skill, request: WorkspaceRequest) -> Skill:
        return assign_skill(skill, self.agent_meant(request), by=request.actor)

    def apply_take(self, skill: Skill, request: WorkspaceRequest) -> Skill:
        return unassign_skill(skill, self.agent_meant(request), by=request.actor)

    def apply_give_all(self, skill: Skill, request: WorkspaceRequest) -> Skill:
        return assign_skill_to_all(skill, by=request.actor)

    def bulk(self, request: WorkspaceRequest, route: str = "bulk") -> HttpResponse:
        """Where an agent is meant, a page asks which one; the list itself need not know them all."""
        verb = next((one for one in (ASSIGN, UNASSIGN) if one.name == request.POST.get("verb")), None)
        rows = self.rows(request).filter(pk__in=parse_row_ids(request.POST.getlist("chosen")))
        if verb is None or "agent" in request.POST or not rows:
            return super().bulk(request, route)
        context = {
            "verb": verb,
            "skills": rows,
            "agents": list_agent_choices(request.workspace),
            "back": get_back_url(request, reverse("skills:list", args=[request.workspace.slug])),
        }
        return render(request, "skills/which_agent.html", context)

    def run_bulk_action(self, request: WorkspaceRequest, verb: BulkAction, ids: Sequence[int]) -> None:
        if verb.needs_agent:
            try:
                self.agent_meant(request)
            except DomainError as error:
                messages.error(request, error.message)
                return
        super().run_bulk_action(request, verb, ids)

    def agent_meant(self, request: WorkspaceRequest) -> Agent:
        said = request.POST.get("agent", "")
        live = Agent.objects.in_workspace(request.workspace).filter(archived_at=None)
        is_key = said.isascii() and said.isdecimal() and len(said) < 16
        agent = live.filter(pk=int(said)).first() if is_key else None
        if agent is None:
            raise DomainError(_("Choose an agent first."))
        return agent


def list_agent_choices(workspace: Workspace) -> list[tuple[str, str]]:
    """Whom skills can be given to; the first choice is none."""
    rows = list_agents(workspace).filter(archived_at=None).prefetch_related(None)
    return [("", _("Choose an agent")), *((str(pk), name) for pk, name in rows.values_list("pk", "name"))]


def iterate_skill_items(
    workspace: Workspace, everything: Sequence[SkillEntry], found: Sequence[SkillEntry]
) -> Iterator[SkillListItem]:
    """Every row that was asked for, a chunk of them at a time."""
    for start in range(0, len(found), CHUNK_SIZE):
        yield from load_skill_items(workspace, everything, found[start : start + CHUNK_SIZE])
