"""Collect the prompt inputs of each agent on each of its channels, from saved rows and an optional draft."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import itemgetter
from typing import Any, Literal, TypeVar, cast

from personas.models import Agent, Channel, Memory, MemoryStatus, Record, Responsibility, Tool, Workspace
from prompts.assembly.inputs import (
    ChannelInput,
    MemoryInput,
    PromptInputs,
    ResponsibilityInput,
    SkillInput,
    ToolInput,
)
from prompts.assembly.segments import SkillFile
from prompts.models import PromptSettings
from prompts.publishing.inputs.agent_tools import complete_agent_tool
from prompts.publishing.inputs.convert import (
    PromptSlugs,
    build_context_file,
    build_documentation_input,
    build_file_input,
    build_record_origin,
    build_skill_input,
    build_text_input,
    build_tool_input,
    describe_context_settings,
    describe_dropped_skills,
    describe_withheld_files,
    is_memory_valid,
)
from prompts.publishing.inputs.inheritance import InheritedSettings, SettingSources
from prompts.publishing.inputs.load import LoadedRows, load_effective_files
from prompts.publishing.inputs.persona import EffectivePersona
from prompts.publishing.inputs.skill_files import describe_missing_files, list_skill_files
from skills.agent_context.effective import EffectiveContext, SkillDraft, get_effective_contexts
from skills.models import Skill

T = TypeVar("T")


def build_skill_inputs(agent: Agent, channel: Channel, context: EffectiveContext) -> tuple[SkillInput, ...]:
    pair = PromptSlugs(agent.slug, channel.slug)
    return tuple([build_skill_input(skill, context, pair) for skill in context.skills if skill.is_used])


@dataclass(frozen=True)
class CollectedInputs:
    """The inputs of one prompt (an agent on a channel), with its layout, budget and setting sources."""

    agent: Agent
    channel: Channel
    inputs: PromptInputs
    layout: str
    # The level that each inherited value came from.
    levels: SettingSources
    token_budget: int | None = None
    # When the validity of a memory next begins or ends. The prompt changes at this time without an edit.
    changes_at: datetime | None = None
    problems: tuple[str, ...] = ()
    skill_files: tuple[SkillFile, ...] = ()


@dataclass(frozen=True)
class DraftRecord:
    """An unsaved edit of a record, for previews.

    The other fields are edited links of the record, for example the tools of an agent. None means that these
    links are unchanged.
    """

    record: Record
    tools: Sequence[Tool] | None = None
    planning_tools: Sequence[Tool] | None = None
    channels: Sequence[Channel] | None = None
    agent_ids: frozenset[int] | None = None

    def to_skill_draft(self) -> SkillDraft | None:
        return SkillDraft(self.record, self.agent_ids) if isinstance(self.record, Skill) else None


def collect_inputs(
    workspace: Workspace | int, agents: Sequence[Agent], *, at: datetime, draft: DraftRecord | None = None
) -> list[CollectedInputs]:
    """Collect the inputs of every agent on each of its channels, with a constant number of queries."""
    return InputCollector(LoadedRows(workspace, agents), at, draft).collect_all()


class InputCollector:
    """Build prompt inputs for a point in time from the saved rows, with a draft in place of one record."""

    def __init__(self, loaded: LoadedRows, at: datetime, draft: DraftRecord | None = None) -> None:
        self.loaded, self.at, self.draft = loaded, at, draft
        self.agents = self.apply_draft_to_all(loaded.agents)
        self.inputs_by_agent: dict[int, dict[str, Any]] = {}
        self.skill_files: dict[int, tuple[SkillFile, ...]] = {}

    def collect_all(self) -> list[CollectedInputs]:
        return [
            self.collect_prompt(agent, channel)
            for agent in self.agents
            for channel in self.channels[agent.pk]
        ]

    def apply_draft(self, record: T) -> T:
        """Return the draft if it is a draft of this record, else the record."""
        if self.draft and isinstance(record, type(self.draft.record)) and record.pk == self.draft.record.pk:
            return cast("T", self.draft.record)
        return record

    def apply_draft_to_all(self, rows: Iterable[T]) -> list[T]:
        return [self.apply_draft(row) for row in rows]

    # --- by agent -----------------------------------------------------------------------------------

    @cached_property
    def channels(self) -> dict[int, list[Channel]]:
        channels_by_agent: dict[int, list[Channel]] = defaultdict(list)
        for agent_id, channels in self.loaded.channels.items():
            channels_by_agent[agent_id] = [self.apply_draft(channel) for channel in channels]
        if self.draft and self.draft.channels is not None and isinstance(self.draft.record, Agent):
            chosen = [channel for channel in self.draft.channels if channel.archived_at is None]
            channels_by_agent[self.draft.record.pk] = chosen
        return channels_by_agent

    @cached_property
    def tools(self) -> dict[int, list[ToolInput]]:
        tools_by_agent: dict[int, list[ToolInput]] = defaultdict(list)
        for link in self.loaded.tool_links:
            tools_by_agent[link.agent_id].append(self.get_tool_input(self.apply_draft(link.tool), link.use))
        draft = self.draft
        if draft and draft.tools is not None and isinstance(draft.record, Agent):
            active = [self.get_tool_input(tool, "active") for tool in draft.tools]
            planning = [self.get_tool_input(tool, "planning") for tool in draft.planning_tools or ()]
            tools_by_agent[draft.record.pk] = [*active, *planning]
        return tools_by_agent

    @cached_property
    def tool_inputs(self) -> dict[tuple[int, str], ToolInput]:
        return {}

    def get_tool_input(self, row: Tool, use: str) -> ToolInput:
        """Convert a tool, once for all agents that share it, because parsing its schema is expensive."""
        if (row.pk, use) not in self.tool_inputs:
            tool = build_tool_input(row, use)
            if row.agent is not None:
                agent = self.apply_draft(row.agent)
                tool = complete_agent_tool(tool, agent, self.find_agent_settings(agent))
            self.tool_inputs[row.pk, use] = tool
        return self.tool_inputs[row.pk, use]

    def find_agent_settings(self, agent: Agent) -> PromptSettings | None:
        """Return the agent's own settings, or None.

        The settings of the agents that saved tools call are loaded; those of a tool in a draft are queried.
        """
        settings = self.settings_by_agent.get(agent.pk)
        if settings is None and self.draft and self.draft.tools is not None:
            rows = PromptSettings.objects.in_workspace(self.loaded.workspace)
            settings = rows.filter(agent=agent, archived_at=None).first()
        return settings

    @cached_property
    def responsibilities(self) -> dict[int, list[ResponsibilityInput]]:
        responsibilities: dict[int, list[ResponsibilityInput]] = defaultdict(list)
        for row in self.apply_draft_to_all(self.loaded.responsibilities):
            responsibilities[row.agent_id].append(
                ResponsibilityInput(row.title, row.text, build_record_origin(row))
            )
        new = self.draft.record if self.draft else None
        if isinstance(new, Responsibility) and new._state.adding:
            responsibilities[new.agent_id].append(
                ResponsibilityInput(new.title, new.text, build_record_origin(new))
            )
        return responsibilities

    @cached_property
    def memories(self) -> list[Memory]:
        """The memories in order of creation. An edited memory keeps its position; a new memory comes last."""
        draft = self.draft.record if self.draft else None
        if not isinstance(draft, Memory):
            return self.loaded.memories
        others = [row for row in self.loaded.memories if row.pk != draft.pk]
        if draft.status != MemoryStatus.ACTIVE:
            return others
        return sorted([*others, draft], key=lambda row: (row.pk is None, row.pk or 0))

    @cached_property
    def memory_inputs(self) -> dict[int | None, list[tuple[int, MemoryInput]]]:
        """The valid memories by agent id, each with its position among all memories."""
        memories_by_agent: dict[int | None, list[tuple[int, MemoryInput]]] = defaultdict(list)
        for position, row in enumerate(self.memories):
            if is_memory_valid(row, self.at):
                memory = MemoryInput(row.text, build_record_origin(row))
                memories_by_agent[row.agent_id].append((position, memory))
        return memories_by_agent

    @cached_property
    def effective_contexts(self) -> dict[int, EffectiveContext]:
        """The effective files and skills by agent id.

        A draft affects them only if it is a draft of a skill, or changes the working directory or the parent
        of an agent.
        """
        if self.draft is not None and isinstance(self.draft.record, Skill):
            return get_effective_contexts(
                self.loaded.workspace, self.agents, self.draft.to_skill_draft(), self.loaded.workspace_skills
            )
        return (
            load_effective_files(self.loaded.workspace, self.agents)
            if self.has_moved_agent
            else self.loaded.effective_contexts
        )

    @property
    def has_moved_agent(self) -> bool:
        """Whether the draft changes the working directory or the parent of an agent."""
        pairs = zip(self.loaded.agents, self.agents, strict=True)
        return any(
            (saved.working_directory, saved.parent_id) != (drafted.working_directory, drafted.parent_id)
            for saved, drafted in pairs
        )

    @cached_property
    def settings(self) -> list[PromptSettings]:
        rows = self.apply_draft_to_all(self.loaded.settings)
        new = self.draft.record if self.draft else None
        # Add a draft of settings for a level that has none yet.
        return [*rows, new] if isinstance(new, PromptSettings) and new._state.adding else rows

    @cached_property
    def defaults(self) -> PromptSettings | None:
        return next((row for row in self.settings if row.agent_id is None and row.channel_id is None), None)

    @cached_property
    def settings_by_agent(self) -> dict[int, PromptSettings]:
        return {row.agent_id: row for row in self.settings if row.agent_id and row.channel_id is None}

    @cached_property
    def settings_by_channel(self) -> dict[int, PromptSettings]:
        return {row.channel_id: row for row in self.settings if row.channel_id and row.agent_id is None}

    @cached_property
    def settings_by_prompt(self) -> dict[tuple[int, int], PromptSettings]:
        return {
            (row.agent_id, row.channel_id): row for row in self.settings if row.agent_id and row.channel_id
        }

    # --- one prompt ---------------------------------------------------------------------------------

    def collect_prompt(self, agent: Agent, channel: Channel) -> CollectedInputs:
        context = self.effective_contexts[agent.pk]
        settings = InheritedSettings(
            self.defaults,
            self.settings_by_agent.get(agent.pk),
            self.settings_by_channel.get(channel.pk),
            self.settings_by_prompt.get((agent.pk, channel.pk)),
        )
        persona = EffectivePersona(agent, settings, context, self.apply_draft)
        inputs = PromptInputs(
            agent=agent.slug,
            identity=persona.build_identity(),
            soul=persona.build_soul(),
            user=persona.build_user_profile(),
            **self.get_agent_inputs(agent, context),
            skills=build_skill_inputs(agent, channel, context),
            native_tools=settings.get_value("native_tools", default=True),
            channel=ChannelInput(channel.name, channel.formatting, build_record_origin(channel)),
            mission=settings.get_text("mission"),
            data=settings.build_data(),
            limits=settings.build_limits(),
            mode=cast("Literal['agent', 'single_turn']", settings.get_value("mode", default="agent")),
            entry=cast("Literal['full', 'simple', 'minimal']", settings.get_value("entry", default="full")),
        )
        # Look up the budget before settings.levels is used: each lookup adds the level of its value there.
        token_budget = settings.get_value("token_budget", default=None)
        return CollectedInputs(
            agent,
            channel,
            inputs,
            agent.layout,
            settings.levels | persona.levels,
            token_budget,
            self.get_next_change(agent),
            (
                *describe_withheld_files(context),
                *describe_context_settings(context),
                *describe_dropped_skills(context),
                *describe_missing_files(context, self.get_skill_files(agent, context)),
            ),
            self.get_skill_files(agent, context),
        )

    def get_skill_files(self, agent: Agent, context: EffectiveContext) -> tuple[SkillFile, ...]:
        if agent.pk not in self.skill_files:
            self.skill_files[agent.pk] = list_skill_files(context)
        return self.skill_files[agent.pk]

    def get_agent_inputs(self, agent: Agent, context: EffectiveContext) -> dict[str, Any]:
        """Return the inputs that are the same on all channels of an agent. They are built once."""
        if agent.pk not in self.inputs_by_agent:
            self.inputs_by_agent[agent.pk] = {
                "instructions": build_text_input(agent.instructions, agent),
                "base": build_file_input(context, "base"),
                "append": build_file_input(context, "append"),
                "responsibilities": tuple(self.responsibilities[agent.pk]),
                "memories": self.list_memories(agent),
                "context_files": tuple(map(build_context_file, context.list_files("context"))),
                "workspace_files": tuple(map(build_context_file, context.list_files("workspace"))),
                "tools": tuple(self.tools[agent.pk]),
                "working_directory": context.working_directory,
                "home": context.reader.home if context.reader else "",
                "directories": tuple(agent.directories),
                "capabilities": None if agent.capabilities is None else tuple(agent.capabilities),
                "documentation": build_documentation_input(agent),
                "is_sub_agent": agent.parent_id is not None,
            }
        return self.inputs_by_agent[agent.pk]

    def list_memories(self, agent: Agent) -> tuple[MemoryInput, ...]:
        """List the memories shared by all agents and those of this agent, in order of creation."""
        own, shared = self.memory_inputs.get(agent.pk, []), self.memory_inputs.get(None, [])
        memories = sorted([*shared, *own], key=itemgetter(0)) if own and shared else own or shared
        return tuple([memory for _position, memory in memories])

    def get_next_change(self, agent: Agent) -> datetime | None:
        timestamps = [self.next_changes.get(None), self.next_changes.get(agent.pk)]
        return min([timestamp for timestamp in timestamps if timestamp is not None], default=None)

    @cached_property
    def next_changes(self) -> dict[int | None, datetime]:
        """When the validity of a memory next begins or ends, by agent id. None is for shared memories."""
        changes: dict[int | None, datetime] = {}
        for row in self.memories:
            for timestamp in (row.valid_from, row.valid_until):
                if timestamp is not None and timestamp > self.at:
                    changes[row.agent_id] = min(timestamp, changes.get(row.agent_id, timestamp))
        return changes
