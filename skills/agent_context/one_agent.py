"""What one agent is given, loaded for it alone: neither others' links nor more files than it can see."""

from functools import cached_property
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from personas.models import Agent
from personas.together import read_together
from skills.agent_context.effective import Holdings
from skills.models import ContextFile, FileAgent, Reach, Skill, SkillLink
from skills.sources.readers import Above, Outlook, above, outlook_of


class OneAgent(Holdings):
    """The same shelf for a single agent in two queries; only a whole one has the words of files."""

    def __init__(self, agent: Agent, *, is_whole: bool = False) -> None:
        self.workspace, self.agents, self.draft = agent.workspace_id, [agent], None
        self.agent, self.is_whole, self.found = agent, is_whole, {}
        self.above: Above = above(agent)
        self.outlook: Outlook | None = outlook_of(agent, self.above)
        self.outlooks = {agent.pk: self.outlook} if self.outlook else {}

    @cached_property
    def rows(self) -> list[list[Any]]:
        return read_together(self.files_near(), self.skills_written())

    @property
    def near(self) -> list[ContextFile]:
        """The files of its source, and the skills that were handed to it."""
        return self.rows[0]

    def files_near(self) -> QuerySet[ContextFile]:
        links = FileAgent.objects.in_workspace(self.workspace).filter(file=OuterRef("pk"), agent=self.agent)
        rows = ContextFile.objects.in_workspace(self.workspace).filter(is_ignored=False)
        own = Q(source=self.outlook.source) if self.outlook else Q(pk=None)
        own &= Q() if self.is_whole else Q(file_kind="skill")
        handed = Q(reach=Reach.ALL) | Q(reach=Reach.CHOSEN, is_mine=True)
        skills = Q(file_kind="skill", source__archived_at=None)
        seen = rows.annotate(is_mine=Exists(links)).filter(own | (skills & handed))
        words = "in_force__content" if self.is_whole else "in_force"
        return seen.select_related(words, "newest", "source").order_by("name", "pk")

    @cached_property
    def files(self) -> dict[int, dict[str, ContextFile]]:
        if self.outlook is None:
            return {}
        source = self.outlook.source.pk
        here = [row for row in self.near if row.source_id == source and (row.is_there or row.in_force_id)]
        return {source: {row.path: row for row in here}}

    @cached_property
    def offered(self) -> list[ContextFile]:
        """Skills that someone gave it, whatever its rules find, in force or not."""
        rows = [row for row in self.near if row.file_kind == "skill" and row.source.archived_at is None]
        return [row for row in rows if row.reach == Reach.ALL or self.is_chosen(row)]

    def is_chosen(self, row: ContextFile) -> bool:
        return row.reach == Reach.CHOSEN and bool(getattr(row, "is_mine", False))

    @cached_property
    def handed(self) -> list[ContextFile]:
        return [row for row in self.offered if row.in_force_id]

    @cached_property
    def handed_links(self) -> set[tuple[int, int]]:
        return {(row.pk, self.agent.pk) for row in self.offered}

    @cached_property
    def written(self) -> list[Skill]:
        return self.rows[1]

    def skills_written(self) -> QuerySet[Skill]:
        links = SkillLink.objects.in_workspace(self.workspace).filter(skill=OuterRef("pk"), agent=self.agent)
        rows = Skill.objects.in_workspace(self.workspace).filter(archived_at=None)
        mine = rows.filter(Q(for_all_agents=True) | Exists(links)).defer("body")
        return mine.order_by("name", "pk")

    @cached_property
    def written_links(self) -> set[tuple[int | None, int]]:
        return {(row.pk, self.agent.pk) for row in self.written}
