"""Hypothesis strategies for inputs and slots, including hostile text."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from prompts.assembly.inputs import (
    ChannelInput,
    ContextFileInput,
    IdentityInput,
    MemoryInput,
    PromptInputs,
    ResponsibilityInput,
    SkillInput,
    Text,
    ToolInput,
    UserProfileInput,
)
from prompts.assembly.segments import Origin
from prompts.assembly.slots import Message, PreviousError, Session, Slots, StepInput, TaskInput

# All tags of all layouts, and attempts to close them.
TAGS = (
    "identity",
    "project-context",
    "skills",
    "environment",
    "tool-guidelines",
    "planning",
    "available_skills",
    "skill",
    "Responsibilities",
    "Responsibility",
    "Memories",
    "Task",
    "Context",
    "soul",
    "memories",
    "user",
)
CLOSERS = [f"</{tag}>" for tag in TAGS] + [f"< / {tag.upper()} x >" for tag in TAGS] + ["</skill", "```", "|"]

plain = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=30)
hostile = st.lists(plain | st.sampled_from([*CLOSERS, "\n", "\n\n", "- ", "&", '"', "#"]), max_size=5).map(
    "".join
)
short_texts = st.text("abc xyz", min_size=1, max_size=12).map(str.strip).filter(bool)
names = st.from_regex(r"\A[a-z][a-z0-9_]{0,10}\Z")
origins = st.builds(
    Origin, st.just("record"), st.text("0123456789", min_size=1, max_size=3), st.integers(1, 9), st.just("")
)


def few(strategy: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(strategy, max_size=3).map(tuple)


def distinct(strategy: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(strategy, max_size=4, unique_by=lambda item: item.name).map(tuple)


texts = st.none() | st.builds(Text, hostile, origins)
tools = st.builds(
    ToolInput,
    name=names | st.sampled_from(["read", "bash", "edit", "write", "read_file", "shell", "memory_search"]),
    description=hostile,
    snippet=hostile,
    guidelines=few(short_texts),
    use=st.sampled_from(["active", "planning"]),
)
inputs = st.builds(
    PromptInputs,
    identity=st.none() | st.builds(IdentityInput, plain, plain, plain, plain, hostile, origins),
    soul=texts,
    user=st.none() | st.builds(UserProfileInput, name=hostile, location=hostile, notes=hostile),
    instructions=texts,
    base=texts,
    append=texts,
    responsibilities=few(st.builds(ResponsibilityInput, hostile, hostile, origins)),
    memories=few(st.builds(MemoryInput, hostile, origins)),
    context_files=few(st.builds(ContextFileInput, plain, hostile)),
    workspace_files=few(st.builds(ContextFileInput, st.sampled_from(["AGENTS.md", "TOOLS.md"]), hostile)),
    skills=distinct(st.builds(SkillInput, names, hostile)),
    tools=distinct(tools),
    native_tools=st.booleans(),
    working_directory=plain,
    directories=few(plain),
    capabilities=st.sampled_from([None, (), ("files",), ("persistence",)]),
    channel=st.none() | st.builds(ChannelInput, names, hostile),
    mode=st.sampled_from(["agent", "single_turn"]),
    entry=st.sampled_from(["full", "simple", "minimal"]),
    is_sub_agent=st.booleans(),
)
slots = st.builds(
    Slots,
    now=st.none() | st.integers(0, 4_000_000_000).map(lambda at: datetime.fromtimestamp(at, UTC)),
    timezone=st.sampled_from(["", "Europe/Paris"]),
    host=st.dictionaries(st.sampled_from(["host", "os", "model", "home", "unknown"]), plain, max_size=3),
    sandbox=st.dictionaries(st.sampled_from(["enabled", "mode"]), st.booleans() | plain, max_size=2),
    session=st.none() | st.builds(Session, plain, plain),
    task=st.none()
    | st.builds(TaskInput, st.integers(1, 99), hostile, hostile, plain, few(st.builds(StepInput, hostile))),
    is_background=st.booleans(),
    previous_error=st.none() | st.builds(PreviousError, short_texts, hostile),
    tools=st.none() | few(st.sampled_from(["read", "bash", "read_file", "shell"])),
    append=hostile,
    messages=few(st.builds(Message, short_texts)),
)
