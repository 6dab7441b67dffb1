"""Skills that are written here, with their history."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Prefetch, Q, QuerySet
from django.urls import URLPattern

from personas.api.authentication import Caller
from personas.api.operations import Call
from personas.api.record_resource import RecordResource
from personas.api.responses import Answer
from personas.api.schema import Shape, line, slug
from personas.errors import Invalid
from personas.models import Agent, Workspace
from personas.records.services import Values
from skills.api_helpers import refuse_limited
from skills.library.api import export_url, import_url
from skills.library.selectors import skills_of
from skills.library.services import UNEDITABLE
from skills.models import Skill, SkillLink
from skills.skill_format.metadata import LONGEST, is_editable

METADATA: Shape = {
    "type": "object",
    "additionalProperties": line(LONGEST),
    "propertyNames": line(200, least=1),
    "description": "Further keys of the head, each with a line of text.",
}


class Skills(RecordResource[Skill]):
    """Know-how in Markdown; a key that is limited to agents reads what those have, and changes none."""

    model = Skill
    name, one = "skills", "skill"
    key, converter = "name", "word"
    searched = ("name", "description")
    lists = {"agents": (Agent, "slug")}
    more = {"name": slug(description="Lower-case letters, digits and hyphens."), "metadata": METADATA}
    agent_path = "agent_links__agent__slug"
    filters = {"agent": slug(description="Only skills that this agent was given, those for all included.")}

    def rows(self, workspace: Workspace) -> QuerySet[Skill]:
        return skills_of(workspace).prefetch_related("agent_links__agent")

    def visible(self, caller: Caller) -> QuerySet[Skill]:
        """With a limited key, a skill names only the agents that the key is for."""
        rows = super().visible(caller)
        if caller.agents is None:
            return rows
        links = SkillLink.objects.in_workspace(caller.workspace).filter(agent__slug__in=caller.agents)
        own = Prefetch("agent_links", queryset=links.select_related("agent"))
        return rows.prefetch_related(None).prefetch_related(own)

    def of_agents(self, rows: QuerySet[Skill], agents: Iterable[str]) -> QuerySet[Skill]:
        return rows.filter(Q(for_all_agents=True) | Q(agent_links__agent__slug__in=list(agents)))

    def narrowed(self, rows: QuerySet[Skill], call: Call) -> QuerySet[Skill]:
        agent = call.query.get("agent")
        return self.of_agents(rows, [agent]) if agent else rows

    def list_told(self, record: Skill, name: str) -> list[Any]:
        return sorted(link.agent.slug for link in record.agent_links.all())

    def values(self, call: Call, *, is_new: bool = False) -> tuple[Values, str]:
        refuse_limited(call)
        values, message = super().values(call, is_new=is_new)
        if "metadata" in values:
            values["metadata"] = settled_metadata(values["metadata"])
        return values, message

    def remove(self, call: Call, key: Any) -> Answer:
        refuse_limited(call)
        return super().remove(call, key)

    def restore(self, call: Call, key: Any) -> Answer:
        refuse_limited(call)
        return super().restore(call, key)

    def go_back(self, call: Call, key: Any, number: int) -> Answer:
        refuse_limited(call)
        return super().go_back(call, key, number)

    def history(self, call: Call, key: Any) -> Answer:
        """Old revisions name every agent that ever had the skill."""
        refuse_limited(call)
        return super().history(call, key)

    def more_urls(self) -> list[URLPattern]:
        return [import_url(self), export_url(self)]


def settled_metadata(said: dict[str, str]) -> dict[str, str]:
    """As a person's form would keep it, or refused."""
    metadata = {key.strip(): value.strip() for key, value in said.items()}
    if not is_editable(metadata):
        raise Invalid.on("metadata", UNEDITABLE)
    return metadata


urlpatterns = Skills().urls()
