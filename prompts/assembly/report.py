"""The report of a build: what was kept, cut, omitted or lost, problems, and cache boundaries."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from prompts.assembly.segments import VOLATILITY_LEVELS

new_tuple = tuple.__new__
VOLATILITY_RANKS = {volatility: rank for rank, volatility in enumerate(VOLATILITY_LEVELS)}


class OmissionReason(StrEnum):
    """Why a part is not in a prompt. Build reports store these codes."""

    BASE_REPLACED = "base_replaced"
    EMPTY = "empty"
    NATIVE_TOOLS = "native_tools"
    NO_CONTEXT_FILES = "no_context_files"
    NO_DIRECTORY = "no_directory"
    NO_DOCUMENTATION = "no_documentation"
    NO_FORMATTING_RULES = "no_formatting_rules"
    NO_IDENTITY = "no_identity"
    NO_IDENTITY_OR_SIMPLE = "no_identity_or_simple"
    NO_IDENTITY_SENTENCE = "no_identity_sentence"
    NO_INSTRUCTIONS = "no_instructions"
    NO_MEMORIES = "no_memories"
    NO_MEMORY_TOOLS = "no_memory_tools"
    NO_MODEL_SKILLS = "no_model_skills"
    NO_OFFERED_SKILLS = "no_offered_skills"
    NO_PLANNING_TOOLS = "no_planning_tools"
    NO_RESPONSIBILITIES = "no_responsibilities"
    NO_SKILLS_OR_NOT_FULL = "no_skills_or_not_full"
    NO_STORAGE = "no_storage"
    NO_TOOL_GUIDELINES = "no_tool_guidelines"
    NO_TOOLS = "no_tools"
    NO_TOOLS_OR_DEFINED = "no_tools_or_defined"
    NO_USER_NAME = "no_user_name"
    NO_WORKSPACE_FILES = "no_workspace_files"
    NOT_IN_CALL = "not_in_call"
    REFERENCE_OFF = "reference_off"
    SIMPLE_ENTRY = "simple_entry"
    SUB_AGENT = "sub_agent"


class PartReport(NamedTuple):
    """One part: how many characters were kept and cut, or why it is omitted."""

    name: str
    kept: int = 0
    cut: int = 0
    omitted: OmissionReason | None = None


class CacheBoundary(NamedTuple):
    """An offset in characters; the text before it changes no more often than `volatility`."""

    volatility: str
    offset: int


class AssemblyReport(NamedTuple):
    """The report of a build, used by budgets, cache advice, impact analysis and pages."""

    parts: tuple[PartReport, ...] = ()
    problems: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    boundaries: tuple[CacheBoundary, ...] = ()


def find_cache_boundaries(starts: Iterable[tuple[str, int]]) -> tuple[CacheBoundary, ...]:
    """Find for each volatility level the longest prefix without more volatile text.

    Each item of `starts` is a volatility and the offset at which text of that volatility begins. The
    boundaries are sorted by offset, and each offset occurs once. The start and the end of the prompt are not
    boundaries.
    """
    ends: list[CacheBoundary] = []
    level = 0
    for volatility, offset in starts:
        rank = VOLATILITY_RANKS[volatility]
        if rank > level:
            if offset and (not ends or ends[-1].offset != offset):
                ends.append(new_tuple(CacheBoundary, (VOLATILITY_LEVELS[level], offset)))
            level = rank
    return tuple(ends)
