"""Agents, and the identities and souls they share."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.agents import tab_views
from personas.agents.agent_list import AgentLists
from personas.agents.forms import AgentForm, IdentityForm, SoulForm
from personas.agents.selectors import agent_and_below, duties_of
from personas.agents.services import create_named
from personas.models import LAYOUTS, Agent, Identity, Soul
from personas.persona_files.views import PersonaFilePages
from personas.records.bulk_views import SHELVING
from personas.records.services import Values
from personas.selectors import agents_of, identities_of, souls_of
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.sorting import NAMED_SORTS


class AgentPages(AgentLists):
    model, form = Agent, AgentForm
    one, many = _("agent"), _("Agents")
    name, icon, templates = "agents", "agents", "personas/agents"
    lede = _("The bots you prompt: who they are, what they do and where they speak.")
    searched = ("name", "slug", "description")

    def rows(self, request: WorkspaceRequest) -> QuerySet[Agent]:
        return agents_of(request.workspace)

    def filters(self, request: WorkspaceRequest) -> list[dict[str, Any]]:
        layouts = [("", gettext("Every layout")), *((name, name) for name in LAYOUTS)]
        return [*super().filters(request), {"name": "layout", "label": gettext("Layout"), "options": layouts}]

    def narrowed(self, rows: QuerySet[Agent], chosen: dict[str, str]) -> QuerySet[Agent]:
        rows = super().narrowed(rows, chosen)
        return rows.filter(layout=chosen["layout"]) if chosen.get("layout") else rows

    def detail(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        """The Persona tab: who the agent is, part by part, and where each part comes from."""
        agent, below = agent_and_below(request.workspace, key)
        if agent is None:
            raise Http404("No such agent.")
        context = {"record": agent, "agent": agent, "sub_agents": below, "duties": duties_of(agent)}
        return self.show(request, "detail", context)

    def more_urls(self) -> list[URLPattern]:
        return [
            path("<slug:key>/memory/", tab_views.memory, name="memory"),
            path("<slug:key>/memory/add/", tab_views.add_memory, name="add-memory"),
            path("<slug:key>/tools/", tab_views.tools, name="tools"),
        ]


class IdentityPages(PersonaFilePages[Identity]):
    model, form = Identity, IdentityForm
    one, many = _("identity"), _("Identities")
    name, icon, templates = "identities", "identity", "personas/identities"
    lede = _("Who agents are: name, emoji, creature, vibe. One identity may serve several agents.")
    used_word, searched = "identity", ("label", "name", "creature", "vibe")
    sorts = NAMED_SORTS | {"name": ("name", "label"), "creature": ("creature", "label")}
    usual_sort, bulk_verbs = "label", SHELVING
    file_name = "IDENTITY.md"

    def rows(self, request: WorkspaceRequest) -> QuerySet[Identity]:
        return identities_of(request.workspace)

    def create(self, request: WorkspaceRequest, values: Values) -> Identity:
        return create_named(Identity, request.workspace, values, by=request.actor)


class SoulPages(PersonaFilePages[Soul]):
    model, form = Soul, SoulForm
    one, many = _("soul"), _("Souls")
    name, icon, templates = "souls", "soul", "personas/souls"
    lede = _("Personalities in Markdown. An agent without one gets the built-in default soul.")
    used_word, searched = "soul", ("label", "text")
    sorts, usual_sort, bulk_verbs = NAMED_SORTS, "label", SHELVING
    file_name = "SOUL.md"

    def rows(self, request: WorkspaceRequest) -> QuerySet[Soul]:
        return souls_of(request.workspace)

    def create(self, request: WorkspaceRequest, values: Values) -> Soul:
        return create_named(Soul, request.workspace, values, by=request.actor)
