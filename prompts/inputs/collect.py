"""What a workspace's prompts are made of, put together for each agent on each of its channels."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal, TypeVar, cast

from personas import models as records
from personas.models import Agent, MemoryState, Record, Workspace
from prompts.assembly import inputs as told
from prompts.assembly.segments import Origin
from prompts.inputs.convert import (
    build_context_file,
    build_file_input,
    build_record_origin,
    build_skill_input,
    build_text_input,
    build_tool_input,
    is_memory_valid,
)
from prompts.inputs.inheritance import InheritedSettings, SettingSources
from prompts.inputs.load import LoadedRows, load_effective_files
from prompts.inputs.persona import EffectivePersona
from prompts.models import PromptSettings
from skills.agent_context.effective import EffectiveContext, SkillDraft, get_effective_contexts
from skills.models import Skill

T = TypeVar("T")


@dataclass(frozen=True)
class CollectedInputs:
    """All that one prompt is built from, and what is known about it besides."""

    agent: Agent
    channel: records.Channel
    inputs: told.PromptInputs
    layout: str
    # Where each inherited value came from.
    levels: SettingSources
    token_budget: int | None = None
    # When a memory begins or ends to hold: the clock alone then makes another prompt.
    changes_at: datetime | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class DraftRecord:
    """A record as it would be after an edit that nobody has made yet; None leaves its links as they are."""

    record: Record
    tools: Sequence[records.Tool] | None = None
    planning_tools: Sequence[records.Tool] | None = None
    channels: Sequence[records.Channel] | None = None
    agent_ids: frozenset[int] | None = None

    def skill(self) -> SkillDraft | None:
        return SkillDraft(self.record, self.agent_ids) if isinstance(self.record, Skill) else None


def collect_inputs(
    workspace: Workspace | int, agents: Sequence[Agent], *, at: datetime, draft: DraftRecord | None = None
) -> list[CollectedInputs]:
    """Every agent on each of its channels; the number of queries does not grow with them."""
    return InputCollector(LoadedRows(workspace, agents), at, draft).all()


class InputCollector:
    """What prompts are made of at a moment: the rows that are saved, and a draft in the place of one."""

    def __init__(self, loaded: LoadedRows, at: datetime, draft: DraftRecord | None = None) -> None:
        self.loaded, self.at, self.draft = loaded, at, draft
        self.agents = self.all_drafted(loaded.agents)

    def all(self) -> list[CollectedInputs]:
        return [self.gathered(agent, channel) for agent in self.agents for channel in self.channels[agent.pk]]

    def drafted(self, record: T) -> T:
        """The draft in place of the record it is a draft of."""
        if self.draft and isinstance(record, type(self.draft.record)) and record.pk == self.draft.record.pk:
            return cast("T", self.draft.record)
        return record

    def all_drafted(self, rows: Iterable[T]) -> list[T]:
        return [self.drafted(row) for row in rows]

    # --- by agent -----------------------------------------------------------------------------------

    @cached_property
    def channels(self) -> dict[int, list[records.Channel]]:
        found: dict[int, list[records.Channel]] = defaultdict(list)
        for agent_id, channels in self.loaded.channels.items():
            found[agent_id] = [self.drafted(channel) for channel in channels]
        if self.draft and self.draft.channels is not None and isinstance(self.draft.record, Agent):
            chosen = [channel for channel in self.draft.channels if channel.archived_at is None]
            found[self.draft.record.pk] = chosen
        return found

    @cached_property
    def tools(self) -> dict[int, list[told.Tool]]:
        found: dict[int, list[told.Tool]] = defaultdict(list)
        for link in self.loaded.tool_links:
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
            self.made_tools[row.pk, use] = build_tool_input(row, use)
        return self.made_tools[row.pk, use]

    @cached_property
    def duties(self) -> dict[int, list[told.Responsibility]]:
        found: dict[int, list[told.Responsibility]] = defaultdict(list)
        for row in self.all_drafted(self.loaded.duties):
            found[row.agent_id].append(told.Responsibility(row.title, row.text, build_record_origin(row)))
        new = self.draft.record if self.draft else None
        if isinstance(new, records.Responsibility) and new._state.adding:
            found[new.agent_id].append(told.Responsibility(new.title, new.text, build_record_origin(new)))
        return found

    @cached_property
    def memories(self) -> list[records.Memory]:
        """A draft keeps its place among the others; a new one comes last, as it will when it is saved."""
        draft = self.draft.record if self.draft else None
        if not isinstance(draft, records.Memory):
            return self.loaded.memories
        others = [row for row in self.loaded.memories if row.pk != draft.pk]
        if draft.state != MemoryState.ACTIVE:
            return others
        return sorted([*others, draft], key=lambda row: (row.pk is None, row.pk or 0))

    @cached_property
    def memory_inputs(self) -> dict[int | None, list[told.Memory]]:
        found: dict[int | None, list[told.Memory]] = {}
        for row in self.memories:
            if is_memory_valid(row, self.at):
                found.setdefault(row.agent_id, []).append(told.Memory(row.text, build_record_origin(row)))
        return found

    @cached_property
    def memory_places(self) -> dict[Origin, int]:
        return {build_record_origin(row): place for place, row in enumerate(self.memories)}

    @cached_property
    def given(self) -> dict[int, EffectiveContext]:
        """Only a skill, or where an agent works, changes what is given."""
        if self.draft is not None and isinstance(self.draft.record, Skill):
            return get_effective_contexts(
                self.loaded.workspace, self.agents, self.draft.skill(), self.loaded.stock
            )
        return (
            load_effective_files(self.loaded.workspace, self.agents) if self.is_moved else self.loaded.given
        )

    @property
    def is_moved(self) -> bool:
        """Whether an agent works elsewhere in the draft, or below another."""
        pairs = zip(self.loaded.agents, self.agents, strict=True)
        return any(
            (saved.working_directory, saved.parent_id) != (drafted.working_directory, drafted.parent_id)
            for saved, drafted in pairs
        )

    @cached_property
    def settings(self) -> list[PromptSettings]:
        return self.all_drafted(self.loaded.settings)

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

    def gathered(self, agent: Agent, channel: records.Channel) -> CollectedInputs:
        given = self.given[agent.pk]
        settings = InheritedSettings(
            self.defaults,
            self.settings_by_agent.get(agent.pk),
            self.settings_by_channel.get(channel.pk),
        )
        persona = EffectivePersona(agent, settings, given, self.drafted)
        inputs = told.PromptInputs(
            agent=agent.slug,
            identity=persona.identity(),
            soul=persona.soul(),
            user=persona.user(),
            instructions=build_text_input(agent.instructions, agent),
            base=build_file_input(given, "base"),
            append=build_file_input(given, "append"),
            responsibilities=tuple(self.duties[agent.pk]),
            memories=self.memories_for(agent),
            context_files=tuple(map(build_context_file, given.of_kind("context"))),
            workspace_files=tuple(map(build_context_file, given.of_kind("workspace"))),
            skills=tuple([build_skill_input(skill) for skill in given.skills if skill.is_used]),
            tools=tuple(self.tools[agent.pk]),
            native_tools=settings.value("native_tools", default=True),
            working_directory=agent.working_directory,
            channel=told.Channel(channel.name, channel.formatting, build_record_origin(channel)),
            mission=settings.text("mission"),
            limits=told.Limits(total=settings.value("total_characters", default=None)),
            mode=cast("Literal['agent', 'single_turn']", settings.value("mode", default="agent")),
            entry=cast("Literal['full', 'simple', 'minimal']", settings.value("entry", default="full")),
            is_sub_agent=agent.parent_id is not None,
        )
        # Asked for before the levels are taken: each question adds its own.
        token_budget = settings.value("token_budget", default=None)
        return CollectedInputs(
            agent,
            channel,
            inputs,
            agent.layout,
            settings.levels | persona.levels,
            token_budget,
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
        found = [self.changes.get(None), self.changes.get(agent.pk)]
        return min([moment for moment in found if moment is not None], default=None)

    @cached_property
    def changes(self) -> dict[int | None, datetime]:
        """By agent, and for the memories that all share: when the next of them begins or ends to hold."""
        found: dict[int | None, datetime] = {}
        for row in self.memories:
            for moment in (row.valid_from, row.valid_until):
                if moment is not None and moment > self.at:
                    found[row.agent_id] = min(moment, found.get(row.agent_id, moment))
        return found
