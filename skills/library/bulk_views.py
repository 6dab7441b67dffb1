"""Bulk actions on the list of skills, and its export columns."""

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
    "give",
    gettext_lazy("Assign to agent…"),
    gettext_lazy("Assigned"),
    statuses=("", "trusted"),
    needs_agent=True,
)
UNASSIGN = BulkAction(
    "take",
    gettext_lazy("Remove from agent…"),
    gettext_lazy("Removed from agent"),
    statuses=("", "trusted"),
    needs_agent=True,
)
ASSIGN_ALL = BulkAction(
    "give_all",
    gettext_lazy("Assign to all agents"),
    gettext_lazy("Assigned to all agents"),
    statuses=("", "trusted"),
)
EXPORT_COLUMNS = [
    ExportColumn("name", lambda listed: listed.title),
    ExportColumn("description", lambda listed: listed.description),
    ExportColumn("source", lambda listed: listed.file.source.name if listed.file else ""),
    ExportColumn("path", lambda listed: listed.file.path if listed.file else ""),
    ExportColumn("status", lambda listed: listed.status),
    ExportColumn("for_all_agents", lambda listed: listed.is_for_all),
    ExportColumn("agents", lambda listed: listed.agent_count),
]


class SkillBulkPages(SkillFilePages):
    """Bulk actions on skill records: assign, unassign, archive, restore."""

    status_filter = "status"
    bulk_actions = (
        ASSIGN,
        UNASSIGN,
        ASSIGN_ALL,
        replace(ARCHIVE_ACTION, statuses=("", "trusted")),
        replace(RESTORE_ACTION, statuses=("ignored",)),
    )

    def apply_give(self, skill: Skill, request: WorkspaceRequest) -> Skill:
        return assign_skill(skill, self.get_selected_agent(request), by=request.actor)

    def apply_take(self, skill: Skill, request: WorkspaceRequest) -> Skill:
        return unassign_skill(skill, self.get_selected_agent(request), by=request.actor)

    def apply_give_all(self, skill: Skill, request: WorkspaceRequest) -> Skill:
        return assign_skill_to_all(skill, by=request.actor)

    def bulk(self, request: WorkspaceRequest, route: str = "bulk") -> HttpResponse:
        """Run the action or, if it needs an agent and none was chosen, show a page to choose the agent.

        The list page has no choice of agents, so that it does not have to load them all.
        """
        action = next(
            (candidate for candidate in (ASSIGN, UNASSIGN) if candidate.name == request.POST.get("verb")),
            None,
        )
        rows = self.rows(request).filter(pk__in=parse_row_ids(request.POST.getlist("chosen")))
        if action is None or "agent" in request.POST or not rows:
            return super().bulk(request, route)
        context = {
            "verb": action,
            "skills": rows,
            "agents": list_agent_choices(request.workspace),
            "back": get_back_url(request, reverse("skills:list", args=[request.workspace.slug])),
        }
        return render(request, "skills/which_agent.html", context)

    def run_bulk_action(self, request: WorkspaceRequest, verb: BulkAction, ids: Sequence[int]) -> None:
        if verb.needs_agent:
            try:
                self.get_selected_agent(request)
            except DomainError as error:
                messages.error(request, error.message)
                return
        super().run_bulk_action(request, verb, ids)

    def get_selected_agent(self, request: WorkspaceRequest) -> Agent:
        raw_id = request.POST.get("agent", "")
        live = Agent.objects.in_workspace(request.workspace).filter(archived_at=None)
        is_id = raw_id.isascii() and raw_id.isdecimal() and len(raw_id) < 16
        agent = live.filter(pk=int(raw_id)).first() if is_id else None
        if agent is None:
            raise DomainError(_("Choose an agent first."))
        return agent


def list_agent_choices(workspace: Workspace) -> list[tuple[str, str]]:
    """Return the active agents as options of a select input, with an empty option first."""
    rows = list_agents(workspace).filter(archived_at=None).prefetch_related(None)
    return [("", _("Choose an agent")), *((str(pk), name) for pk, name in rows.values_list("pk", "name"))]


def iterate_skill_items(
    workspace: Workspace, all_entries: Sequence[SkillEntry], entries: Sequence[SkillEntry]
) -> Iterator[SkillListItem]:
    """Yield the list items of the entries. They are loaded in chunks, so that an export can be streamed."""
    for start in range(0, len(entries), CHUNK_SIZE):
        yield from load_skill_items(workspace, all_entries, entries[start : start + CHUNK_SIZE])
