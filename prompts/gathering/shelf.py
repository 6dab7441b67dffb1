"""Everything a workspace's prompts are made of, loaded once for many agents."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal, TypeVar, cast

from django.db.models import Q

from personas import models as records
from personas.models import Agent, AgentChannel, AgentTool, MemoryState, Record, Workspace
from prompts.assembly import inputs as told
from prompts.assembly.pieces import Origin
from prompts.gathering.converting import (
    context_file,
    file_text,
    holds,
    origin_of,
    skill_input,
    text_of,
    tool_input,
)
from prompts.gathering.persona import Persona
from prompts.levels import Levels, Settings
from prompts.models import PromptSettings
from skills.models import Skill
from skills.selectors.in_use import Given, SkillDraft, given_to_all

T = TypeVar("T")


@dataclass(frozen=True)
class Gathered:
    """All that one prompt is built from, and what is known about it besides."""

    agent: Agent
    channel: records.Channel
    inputs: told.PromptInputs
    layout: str
    # Where each inherited value came from.
    levels: Levels
    token_budget: int | None = None
    # When a memory begins or ends to hold: the clock alone then makes another prompt.
    changes_at: datetime | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Draft:
    """A record as it would be after an edit that nobody has made yet; None leaves its links as they are."""

    record: Record
    tools: Sequence[records.Tool] | None = None
    planning_tools: Sequence[records.Tool] | None = None
    channels: Sequence[records.Channel] | None = None
    agent_ids: frozenset[int] | None = None

    def skill(self) -> SkillDraft | None:
        return SkillDraft(self.record, self.agent_ids) if isinstance(self.record, Skill) else None


def gather(
    workspace: Workspace | int, agents: Sequence[Agent], *, at: datetime, draft: Draft | None = None
) -> list[Gathered]:
    """Every agent on each of its channels; the number of queries does not grow with them."""
    shelf = Shelf(workspace, agents, at, draft)
    return [shelf.gathered(agent, channel) for agent in shelf.agents for channel in shelf.channels[agent.pk]]


class Shelf:
    """What a workspace's prompts are made of, loaded once for many agents."""

    def __init__(
        self, workspace: Workspace | int, agents: Sequence[Agent], at: datetime, draft: Draft | None
    ) -> None:
        self.workspace, self.at, self.draft = workspace, at, draft
        self.ids = [agent.pk for agent in agents]
        rows = Agent.objects.in_workspace(workspace).filter(pk__in=self.ids, archived_at=None)
        found = rows.select_related("identity", "soul", "user_profile").order_by("pk")
        self.agents = [self.drafted(agent) for agent in found]

    def drafted(self, record: T) -> T:
        """The draft in place of the record it is a draft of."""
        if self.draft and isinstance(record, type(self.draft.record)) and record.pk == self.draft.record.pk:
            return cast("T", self.draft.record)
        return record

    def all_drafted(self, rows: Iterable[T]) -> list[T]:
        return [self.drafted(row) for row in rows]

    # --- loaded once --------------------------------------------------------------------------------

    @cached_property
    def channels(self) -> dict[int, list[records.Channel]]:
        links = AgentChannel.objects.in_workspace(self.workspace).filter(agent__in=self.ids)
        found: dict[int, list[records.Channel]] = defaultdict(list)
        for link in links.select_related("channel").order_by("position", "pk"):
            if link.channel.archived_at is None:
                found[link.agent_id].append(self.drafted(link.channel))
        if self.draft and self.draft.channels is not None and isinstance(self.draft.record, Agent):
            found[self.draft.record.pk] = list(self.draft.channels)
        return found

    @cached_property
    def tools(self) -> dict[int, list[told.Tool]]:
        links = AgentTool.objects.in_workspace(self.workspace).filter(agent__in=self.ids)
        found: dict[int, list[told.Tool]] = defaultdict(list)
        for link in links.select_related("tool").order_by("position", "pk"):
            found[link.agent_id].append(self.tool(self.drafted(link.tool), link.use))
        draft = self.draft
        if draft and draft.tools is not None and isinstance(draft.record, Agent):
            active = [self.tool(tool, "active") for tool in draft.tools]
            planned = [self.tool(tool, "planning") for tool in draft.planning_tools or ()]
            found[draft.record.pk] = [*active, *planned]
        return found

    @cached_property
    def made_tools(self) -> dict[tuple[int, str], told.Tool]:
        return {}

    def tool(self, row: records.Tool, use: str) -> told.Tool:
        """Made once for all agents that have it: parsing its schema is the dearest part."""
        if (row.pk, use) not in self.made_tools:
            self.made_tools[row.pk, use] = tool_input(row, use)
        return self.made_tools[row.pk, use]

    @cached_property
    def duties(self) -> dict[int, list[told.Responsibility]]:
        rows = records.Responsibility.objects.in_workspace(self.workspace).filter(
            agent__in=self.ids, archived_at=None
        )
        found: dict[int, list[told.Responsibility]] = defaultdict(list)
        for row in self.all_drafted(rows.order_by("position", "pk")):
            found[row.agent_id].append(told.Responsibility(row.title, row.text, origin_of(row)))
        new = self.draft.record if self.draft else None
        if isinstance(new, records.Responsibility) and new._state.adding:
            found[new.agent_id].append(told.Responsibility(new.title, new.text, origin_of(new)))
        return found

    @cached_property
    def memories(self) -> list[records.Memory]:
        """Oldest first: a stable order keeps the text, and so the version, unchanged."""
        rows = records.Memory.objects.in_workspace(self.workspace).filter(
            archived_at=None, state=MemoryState.ACTIVE
        )
        rows = rows.filter(Q(agent=None) | Q(agent__in=self.ids)).order_by("pk")
        found = self.all_drafted(rows)
        if self.draft and isinstance(self.draft.record, records.Memory):
            found = [row for row in found if row.pk != self.draft.record.pk]
            found += [self.draft.record] if self.draft.record.state == MemoryState.ACTIVE else []
        return found

    @cached_property
    def memory_inputs(self) -> dict[int | None, list[told.Memory]]:
        found: dict[int | None, list[told.Memory]] = {}
        for row in self.memories:
            if holds(row, self.at):
                found.setdefault(row.agent_id, []).append(told.Memory(row.text, origin_of(row)))
        return found

    @cached_property
    def memory_places(self) -> dict[Origin, int]:
        return {origin_of(row): place for place, row in enumerate(self.memories)}

    @cached_property
    def given(self) -> dict[int, Given]:
        return given_to_all(self.workspace, self.agents, self.draft.skill() if self.draft else None)

    @cached_property
    def settings(self) -> list[PromptSettings]:
        rows = PromptSettings.objects.in_workspace(self.workspace).filter(archived_at=None)
        wanted = rows.filter(Q(agent=None) | Q(agent__in=self.ids))
        return self.all_drafted(wanted.select_related("identity", "soul", "user_profile"))

    @cached_property
    def defaults(self) -> PromptSettings | None:
        return next((row for row in self.settings if row.agent_id is None and row.channel_id is None), None)

    @cached_property
    def settings_by_agent(self) -> dict[int, PromptSettings]:
        return {row.agent_id: row for row in self.settings if row.agent_id is not None}

    @cached_property
    def settings_by_channel(self) -> dict[int, PromptSettings]:
        return {row.channel_id: row for row in self.settings if row.channel_id is not None}

    # --- one prompt ---------------------------------------------------------------------------------

    def gathered(self, agent: Agent, channel: records.Channel) -> Gathered:
        given = self.given[agent.pk]
        settings = Settings(
            self.defaults,
            self.settings_by_agent.get(agent.pk),
            self.settings_by_channel.get(channel.pk),
        )
        persona = Persona(agent, settings, given, self.drafted)
        inputs = told.PromptInputs(
            agent=agent.slug,
            identity=persona.identity(),
            soul=persona.soul(),
            user=persona.user(),
            instructions=text_of(agent.instructions, agent),
            base=file_text(given, "base"),
            append=file_text(given, "append"),
            responsibilities=tuple(self.duties[agent.pk]),
            memories=self.memories_for(agent),
            context_files=tuple(map(context_file, given.of_kind("context"))),
            workspace_files=tuple(map(context_file, given.of_kind("workspace"))),
            skills=tuple([skill_input(skill) for skill in given.skills if skill.is_used]),
            tools=tuple(self.tools[agent.pk]),
            native_tools=settings.value("native_tools", default=True),
            working_directory=agent.working_directory,
            channel=told.Channel(channel.name, channel.formatting, origin_of(channel)),
            mission=settings.text("mission"),
            limits=told.Limits(total=settings.value("total_characters", default=None)),
            mode=cast("Literal['agent', 'single_turn']", settings.value("mode", default="agent")),
            entry=cast("Literal['full', 'simple', 'minimal']", settings.value("entry", default="full")),
            is_sub_agent=agent.parent_id is not None,
        )
        return Gathered(
            agent,
            channel,
            inputs,
            agent.layout,
            settings.levels | persona.levels,
            settings.value("token_budget", default=None),
            self.next_change(agent),
            tuple([f"{file.path}: {file.get_state_display().lower()}." for file in given.withheld]),
        )

    def memories_for(self, agent: Agent) -> tuple[told.Memory, ...]:
        """Shared and own ones in one order, as they were told."""
        own, shared = self.memory_inputs.get(agent.pk, []), self.memory_inputs.get(None, [])
        if not own:
            return tuple(shared)
        return tuple(sorted([*shared, *own], key=lambda memory: self.memory_places[memory.origin]))

    def next_change(self, agent: Agent) -> datetime | None:
        mine = [row for row in self.memories if row.agent_id in (None, agent.pk)]
        moments = [moment for row in mine for moment in (row.valid_from, row.valid_until)]
        return min([moment for moment in moments if moment is not None and moment > self.at], default=None)
