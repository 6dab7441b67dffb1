"""Pages of agents."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.agents import tab_views
from personas.agents.agent_file import import_agent
from personas.agents.forms import AgentForm
from personas.agents.selectors import get_agent_with_sub_agents, list_agent_responsibilities
from personas.errors import InvalidInput
from personas.models import LAYOUTS, Agent, Workspace
from personas.persona_files.forms import JsonImportForm
from personas.records.bulk_views import ARCHIVE_ACTIONS
from personas.records.list_views import DATE_FIELDS, RecordListing, build_filter_chip, get_query_param
from personas.records.views import PageView, RecordPages
from personas.roles import Permission
from personas.selectors import list_agents, list_identities, list_souls, list_user_profiles
from personas.tenancy.middleware import (
    WorkspaceRequest,
    is_review_lift,
    require_permission,
    require_reauthentication,
)
from personas.ui.display_names import get_display_name
from personas.ui.export import ExportColumn, build_export_columns
from personas.ui.review import IMPORT_REVIEW

# Query parameters that filter the list of agents by a record they use, and the Django lookup of each.
# Example: the detail page of a tool links to the agents that use it with `?tool=<name>`.
USAGE_FILTERS = {
    "channel": "channel_links__channel__slug",
    "tool": "tool_links__tool__name",
    "skill": "skill_links__skill__name",
    "identity": "identity__slug",
    "soul": "soul__slug",
    "user_profile": "user_profile__slug",
}


# By field of the agent: the function that lists the records that can be preselected for it.
PERSONA_RECORDS: dict[str, Callable[[Workspace], QuerySet[Any]]] = {
    "identity": list_identities,
    "soul": list_souls,
    "user_profile": list_user_profiles,
}


class AgentListPages(RecordPages[Agent]):
    """The list of agents: sorting, export, and filters such as "agents that use this tool"."""

    sorts = {
        "name": ("name",),
        "layout": ("layout", "name"),
        "soul": ("soul__name", "name"),
        "changed": ("updated_at",),
    }
    default_sort, bulk_actions = "name", ARCHIVE_ACTIONS
    export_fields = (
        "slug",
        "name",
        "description",
        "layout",
        "release_policy",
        "identity__name",
        "soul__name",
        "user_profile__name",
        "parent__slug",
        "working_directory",
        "directories",
        "capabilities",
        "documentation_main",
        "documentation_additional",
        "documentation_examples",
        "instructions",
    )

    def get_listing(self, request: WorkspaceRequest) -> RecordListing[Agent]:
        listing = super().get_listing(request)
        usage = {
            param: get_query_param(request, param)[:100]
            for param in USAGE_FILTERS
            if get_query_param(request, param)
        }
        if not usage:
            return listing
        using = Agent.objects.in_workspace(request.workspace)
        for param, value in usage.items():
            using = using.filter(**{USAGE_FILTERS[param]: value})
        chips = [
            build_filter_chip(request, param, get_display_name(param), value)
            for param, value in usage.items()
        ]
        return replace(listing, rows=listing.rows.filter(pk__in=using.values("pk")), chips=chips)

    def get_export_columns(self) -> list[ExportColumn]:
        links = [
            ExportColumn("channels", lambda agent: [link.channel.slug for link in agent.channel_links.all()]),
            ExportColumn("tools", lambda agent: [link.tool.name for link in agent.tool_links.all()]),
        ]
        return [*build_export_columns(self.export_fields), *links, *build_export_columns(DATE_FIELDS)]


class AgentPages(AgentListPages):
    model, form = Agent, AgentForm
    one, many = _("agent"), _("Agents")
    name, icon, templates = "agents", "agents", "personas/agents"
    lede = _("Your bots, with their persona, work, capabilities and channels.")
    search_fields = ("name", "slug", "description")

    def rows(self, request: WorkspaceRequest) -> QuerySet[Agent]:
        return list_agents(request.workspace)

    def require_recent_sign_in(self, view: PageView) -> PageView:
        return require_reauthentication(view, is_review_lift)

    def filters(self, request: WorkspaceRequest) -> list[dict[str, Any]]:
        layouts = [("", gettext("All layouts")), *((name, name) for name in LAYOUTS)]
        return [*super().filters(request), {"name": "layout", "label": gettext("Layout"), "options": layouts}]

    def filter_rows(self, rows: QuerySet[Agent], chosen: dict[str, str]) -> QuerySet[Agent]:
        rows = super().filter_rows(rows, chosen)
        return rows.filter(layout=chosen["layout"]) if chosen.get("layout") else rows

    def get_initial(self, request: WorkspaceRequest) -> dict[str, Any]:
        return super().get_initial(request) | self.get_edit_initial(request)

    def get_edit_initial(self, request: WorkspaceRequest) -> dict[str, Any]:
        """Preselect the identity, soul or user profile from whose page the member comes."""
        initial = {}
        for name, list_records in PERSONA_RECORDS.items():
            slug = get_query_param(request, name)[:100]
            if slug and (record := list_records(request.workspace).filter(slug=slug).first()):
                initial[name] = record
        return initial

    def detail(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        """Show the Persona tab: identity, soul, user profile, responsibilities and sub-agents."""
        agent, sub_agents = get_agent_with_sub_agents(request.workspace, key)
        if agent is None:
            raise Http404("Agent not found.")
        context = {
            "record": agent,
            "agent": agent,
            "sub_agents": sub_agents,
            "duties": list_agent_responsibilities(agent),
        }
        return self.render_page(request, "detail", context)

    @require_permission(Permission.EDIT, IMPORT_REVIEW)
    def import_file(self, request: WorkspaceRequest) -> HttpResponse:
        """Import the JSON configuration of a nova agent."""
        form = JsonImportForm(request.POST or None, request.FILES or None)
        if request.method == "POST" and form.is_valid():
            try:
                result = import_agent(request.workspace, form.cleaned_data["data"], by=request.actor)
            except InvalidInput as error:
                form.add_service_errors(error)
            else:
                messages.success(request, gettext("Agent “%(agent)s” imported.") % {"agent": result.agent})
                if result.not_imported:
                    keys = ", ".join(result.not_imported)
                    messages.warning(
                        request, gettext("These fields were not imported: %(keys)s.") % {"keys": keys}
                    )
                return redirect(self.get_record_url(result.agent))
        return self.render_page(request, "import", {"form": form}, status=422 if form.errors else 200)

    def more_urls(self) -> list[URLPattern]:
        return [
            path("import/", self.import_file, name="import"),
            path("<slug:key>/memory/", tab_views.memory_tab, name="memory"),
            path("<slug:key>/memory/add/", tab_views.add_memory, name="add-memory"),
            path("<slug:key>/tools/", tab_views.tools_tab, name="tools"),
        ]
