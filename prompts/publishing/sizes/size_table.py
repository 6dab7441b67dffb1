"""The size table of a version: which records, files, tools and layout texts its tokens come from.

It is computed from the stored segments and tool definitions, so it also covers versions that were built
before definitions were counted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from django.utils.translation import gettext as _

# Imported for its side effect: each layout registers the renderers of its slots.
import prompts.assembly.layouts  # noqa: F401
from personas.models import Workspace
from personas.ui.display_names import get_section_name
from prompts.assembly.layout import SLOT_ORIGIN
from prompts.assembly.segments import LAYOUT_ORIGIN, Origin, Segment
from prompts.assembly.sizes import PLAIN_SLOTS, TokenCounter, measure_sections
from prompts.assembly.slots import fill_segments
from prompts.publishing.provenance.origins import describe_origins
from prompts.publishing.versions.tool_definitions import DefinitionJson, encode_definition

TOOL_DEFINITION = "tool_definition"


class Contributor(NamedTuple):
    """One source of a prompt's size: a record, a file, the layout text of a section, or a tool definition."""

    kind: str
    # The record or file. For layout text and tool definitions, the origin has no id and no path.
    origin: Origin
    # The name of the tool that a tool definition is for; empty for other contributors.
    tool: str
    # The sections that contain text of the contributor; empty for a tool definition.
    sections: tuple[str, ...]
    characters: int
    tokens: int
    # Share of the tokens of all contributors, from 0 to 1.
    share: float


class SizeTable(NamedTuple):
    """The contributors, largest first, and the token figures of the whole."""

    contributors: Sequence[Contributor]
    text_tokens: int
    tool_tokens: int

    @property
    def tokens(self) -> int:
        return self.text_tokens + self.tool_tokens

    @property
    def characters(self) -> int:
        return sum(one.characters for one in self.contributors)


@dataclass
class TextPieces:
    """The text of one contributor, collected from all sections."""

    origin: Origin
    texts: list[str] = field(default_factory=list)
    # Used as an ordered set.
    sections: dict[str, None] = field(default_factory=dict)


def build_size_table(
    segments: Sequence[Segment], definitions: Iterable[DefinitionJson], count: TokenCounter
) -> SizeTable:
    """Build the table of a version, as a plain fetch sends it: without the slots that it leaves out.

    Contributors are counted one by one, so their sum can differ by a few tokens from that of the text.
    """
    definitions = list(definitions)
    rows = [*measure_texts(segments, count), *measure_definitions(definitions, count)]
    total = max(sum(row.tokens for row in rows), 1)
    text_tokens = sum(tokens for _, tokens in measure_sections(segments, count).values())
    tool_tokens = sum(row.tokens for row in rows if row.kind == TOOL_DEFINITION)
    shared = [row._replace(share=row.tokens / total) for row in rows]
    # The sort is stable: contributors of equal size keep the order of the prompt.
    return SizeTable(sorted(shared, key=lambda row: (-row.tokens, -row.characters)), text_tokens, tool_tokens)


def measure_texts(segments: Sequence[Segment], count: TokenCounter) -> list[Contributor]:
    """Measure the text of each record and file, and of the layout in each section."""
    pieces: dict[object, TextPieces] = {}
    for segment in fill_segments(segments, PLAIN_SLOTS):
        origin = segment.origin
        is_layout = origin in (LAYOUT_ORIGIN, SLOT_ORIGIN)
        key = segment.section if is_layout else origin
        one = pieces.setdefault(key, TextPieces(LAYOUT_ORIGIN if is_layout else origin))
        one.texts.append(segment.text)
        one.sections[segment.section] = None
    return [measure_pieces(one, count) for one in pieces.values() if any(one.texts)]


def measure_pieces(pieces: TextPieces, count: TokenCounter) -> Contributor:
    text = "".join(pieces.texts)
    return Contributor(
        pieces.origin.kind, pieces.origin, "", tuple(pieces.sections), len(text), count(text), 0.0
    )


def measure_definitions(definitions: Iterable[DefinitionJson], count: TokenCounter) -> list[Contributor]:
    rows = []
    for definition in definitions:
        text = encode_definition(definition)
        name = str(definition.get("name", ""))
        rows.append(Contributor(TOOL_DEFINITION, Origin("tool"), name, (), len(text), count(text), 0.0))
    return rows


@dataclass(frozen=True)
class ContributorLabel:
    """A contributor for display: what it is, its name, and the page of its record."""

    contributor: Contributor
    label: str
    name: str
    url: str = ""

    @property
    def css_kind(self) -> str:
        return "tool" if self.contributor.kind == TOOL_DEFINITION else self.contributor.kind


def describe_contributors(
    workspace: Workspace, contributors: Sequence[Contributor]
) -> list[ContributorLabel]:
    """Label the contributors, with at most three queries for any number of them."""
    labels = describe_origins(workspace, {one.origin for one in contributors if one.kind != TOOL_DEFINITION})
    rows = []
    for one in contributors:
        if one.kind == TOOL_DEFINITION:
            rows.append(ContributorLabel(one, _("Tool definition"), one.tool))
        elif label := labels.get(one.origin):
            rows.append(ContributorLabel(one, label.label, label.name, label.url))
        else:
            section = get_section_name(one.sections[0])
            rows.append(ContributorLabel(one, _("Layout text"), section))
    return rows
