"""Agents, and the identities and souls they share."""

from typing import Any

from django.db.models import QuerySet

from personas.forms.agents import AgentForm, IdentityForm, SoulForm
from personas.models import LAYOUTS, Agent, Identity, Soul, ToolUse
from personas.selectors import agents_of, identities_of, memories_of, souls_of, tasks_of
from personas.services.agents import create_named
from personas.services.records import Values
from personas.tenancy import WorkspaceRequest
from personas.views.persona_files import PersonaFilePages
from personas.views.records import RecordPages


class AgentPages(RecordPages[Agent]):
    model, form = Agent, AgentForm
    name, one, icon, templates = "agents", "agent", "agents", "personas/agents"
    lede = "The bots you prompt: who they are, what they do and where they speak."
    searched = ("name", "slug", "description")

    def rows(self, request: WorkspaceRequest) -> QuerySet[Agent]:
        return agents_of(request.workspace)

    def filters(self, request: WorkspaceRequest) -> list[dict[str, Any]]:
        layouts = [("", "Every layout"), *((name, name) for name in LAYOUTS)]
        return [*super().filters(request), {"name": "layout", "label": "Layout", "options": layouts}]

    def narrowed(self, rows: QuerySet[Agent], chosen: dict[str, str]) -> QuerySet[Agent]:
        rows = super().narrowed(rows, chosen)
        return rows.filter(layout=chosen["layout"]) if chosen.get("layout") else rows

    def detail_context(self, request: WorkspaceRequest, record: Agent) -> dict[str, Any]:
        links = list(record.tool_links.all())
        return {
            "active_tools": [link.tool for link in links if link.use == ToolUse.ACTIVE],
            "planning_tools": [link.tool for link in links if link.use == ToolUse.PLANNING],
            "duties": record.responsibilities.filter(archived_at=None),
            "memories": memories_of(request.workspace).filter(agent=record, archived_at=None)[:6],
            "tasks": tasks_of(request.workspace).filter(agent=record, archived_at=None)[:6],
            "skills": record.skill_links.filter(skill__archived_at=None).select_related("skill"),
            "sub_agents": record.sub_agents.filter(archived_at=None),
        }


class IdentityPages(PersonaFilePages[Identity]):
    model, form = Identity, IdentityForm
    name, one, icon, templates = "identities", "identity", "identity", "personas/identities"
    lede = "Who agents are: name, emoji, creature, vibe. One identity may serve several agents."
    searched = ("label", "name", "creature", "vibe")
    file_name = "IDENTITY.md"

    def rows(self, request: WorkspaceRequest) -> QuerySet[Identity]:
        return identities_of(request.workspace)

    def create(self, request: WorkspaceRequest, values: Values) -> Identity:
        return create_named(Identity, request.workspace, values, by=request.actor)


class SoulPages(PersonaFilePages[Soul]):
    model, form = Soul, SoulForm
    name, one, icon, templates = "souls", "soul", "soul", "personas/souls"
    lede = "Personalities in Markdown. An agent without one gets the built-in default soul."
    searched = ("label", "text")
    file_name = "SOUL.md"

    def rows(self, request: WorkspaceRequest) -> QuerySet[Soul]:
        return souls_of(request.workspace)

    def create(self, request: WorkspaceRequest, values: Values) -> Soul:
        return create_named(Soul, request.workspace, values, by=request.actor)
