"""The tokens of the sections of a prompt's last versions, for a chart."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from prompts.models import AgentPrompt, PromptVersion

MAX_VERSIONS = 24
# The largest sections, up to this many, have a colour of their own. The others are drawn together.
MAX_SECTIONS = 7
OTHER_SECTIONS = "other"
TOOL_SECTION = "tool_definitions"


@dataclass(frozen=True)
class VersionSizes:
    """The tokens of one version by section, in the order of the chart."""

    number: int
    tokens: Sequence[int]

    @property
    def total(self) -> int:
        return sum(self.tokens)


@dataclass(frozen=True)
class SizeHistory:
    """The tokens by section of several versions, the oldest first."""

    sections: Sequence[str]
    versions: Sequence[VersionSizes]

    @property
    def highest(self) -> int:
        return max((version.total for version in self.versions), default=0)


def load_size_history(prompt: AgentPrompt) -> SizeHistory | None:
    """Return the sizes of the last versions; None if there are fewer than two."""
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    found = list(rows.order_by("-number").values_list("number", "sizes", "tokens")[:MAX_VERSIONS])
    if len(found) < 2:
        return None
    versions = [(number, get_section_tokens(sizes, total)) for number, sizes, total in reversed(found)]
    largest: Counter[str] = Counter()
    for _number, tokens in versions:
        largest |= tokens
    names = [name for name, _tokens in largest.most_common(MAX_SECTIONS)]
    has_others = len(largest) > len(names)
    return SizeHistory(
        [*names, *([OTHER_SECTIONS] if has_others else [])],
        [VersionSizes(number, list_tokens(tokens, names, has_others)) for number, tokens in versions],
    )


def get_section_tokens(sizes: dict[str, list[int]], total: int) -> Counter[str]:
    """Return the tokens by section; what the sections do not have are the tool definitions."""
    tokens = Counter({name: size[1] for name, size in sizes.items() if size[1]})
    return tokens + Counter({TOOL_SECTION: total - tokens.total()})


def list_tokens(tokens: Counter[str], names: Sequence[str], has_others: bool) -> list[int]:
    shown = [tokens[name] for name in names]
    return [*shown, tokens.total() - sum(shown)] if has_others else shown
