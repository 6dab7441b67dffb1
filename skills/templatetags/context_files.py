"""Template tags for context files: statuses, kinds, texts and diffs. Hidden characters are made visible."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from core.text.diff import DiffLine
from personas.models import Agent
from personas.templatetags.ui import badge
from personas.ui.navigation import build_url_format
from skills.agent_context.effective import SKILL_RECORD_PATH
from skills.agent_context.withheld import AgentFiles, get_agent_files
from skills.files.prompt_usage import describe_usages
from skills.files.reasons import KIND_LABELS, list_status_reasons
from skills.files.statuses import is_live_without_review
from skills.files.visible_text import VisibleText, build_glyph
from skills.models import ContextFile, FileStatus
from skills.scanning import mask_secrets
from skills.templatetags.text_html import (
    LineBlock,
    RenderedLine,
    SplitBlock,
    render_changed_lines,
    render_diff_lines,
    render_glyph,
    render_pieces,
    render_split_lines,
    render_text_lines,
)

register = template.Library()

STATUS_TONES = {
    "quarantined": "error",
    "invalid": "error",
    "missing": "warning",
    "changed": "info",
    "new": "accent",
    "current": "success",
    "ignored": "neutral",
}
# The scanner's notation for a hidden character in an excerpt, such as ⟦U+200B⟧ for a zero-width space.
EXCERPT_MARK_PATTERN = re.compile(r"⟦U\+([0-9A-F]{4,5}|10[0-9A-F]{4})⟧")


@register.simple_tag
def file_status_badge(status: str) -> SafeString:
    """Render a file's status as a badge."""
    return badge(FileStatus(status).label, STATUS_TONES[status])


@register.simple_tag
def live_badge(file: ContextFile) -> SafeString | str:
    """Render a badge if prompts use content of the file that nobody has approved."""
    return badge(_("Live, not reviewed"), "warning") if is_live_without_review(file) else ""


@register.filter
def kind_label(kind: str) -> str:
    """Return the label of a file kind."""
    return str(KIND_LABELS.get(kind, kind))


def file_place(file: ContextFile, source_url: str) -> SafeString:
    """Render the kind of a file and a link to its source."""
    sentence = _(
        '{kind} in <a class="dr-quiet-link" href="{source_url}" id="source-of-{key}"><bdi>{source}</bdi></a>'
    )
    return format_html(
        sentence,
        kind=kind_label(file.file_kind),
        source_url=source_url,
        key=file.pk,
        source=file.source.name,
    )


@register.filter
def location_label(location: str) -> str:
    """Return the path of a skill file, or a translated text for a skill that is stored as a record."""
    return _("skill record") if location == SKILL_RECORD_PATH else location


register.filter("reasons", list_status_reasons)


@register.simple_tag
def file_usages(*file_lists: Iterable[ContextFile]) -> dict[int, str]:
    """Return for each file a sentence on the revision that prompts contain, by file id."""
    return describe_usages([file for files in file_lists for file in files])


@register.filter
def usage_of(usages: dict[int, str], file: ContextFile) -> str:
    return usages[file.pk]


@register.filter
def thousands(number: int) -> str:
    """Format a number with thousands separators."""
    return f"{number:,}"


@register.filter
def glyphs(text: str) -> SafeString:
    """Render a text as escaped HTML. Each hidden character is shown as a box with its code point."""
    return render_pieces(VisibleText(text).split_chunks())


register.filter("mask_secrets", mask_secrets)


@register.filter
def render_excerpt(excerpt: str) -> SafeString:
    """Render a scanner excerpt as escaped HTML. Its notation for hidden characters is shown as boxes."""
    return format_html_join("", "{}", ((chunk,) for chunk in render_marks(excerpt)))


def render_marks(excerpt: str) -> Iterator[str | SafeString]:
    for index, chunk in enumerate(EXCERPT_MARK_PATTERN.split(excerpt)):
        is_code = index % 2 == 1
        yield render_glyph(build_glyph(chr(int(chunk, 16)))) if is_code else chunk


@register.filter
def hidden_character_names(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """List the hidden characters in excerpts of findings, such as “U+200B ZERO WIDTH SPACE”, each once."""
    excerpts = [finding["excerpt"] for finding in findings or ()]
    codes = dict.fromkeys(code for excerpt in excerpts for code in EXCERPT_MARK_PATTERN.findall(excerpt))
    return [build_glyph(chr(int(code, 16))).title for code in codes]


@register.filter
def short_digest(digest: str) -> SafeString:
    """Render the first 12 characters of a digest, with the full digest as tooltip."""
    return format_html('<span class="dr-mono" title="{}">{}</span>', digest, digest[:12])


@register.simple_tag
def text_lines(text: str, flagged: Collection[int] | None = None) -> list[LineBlock]:
    """Return a text as numbered lines. The lines whose numbers are in `flagged` are highlighted."""
    return render_text_lines(text, flagged or ())


@register.simple_tag
def diff_parts(lines: Sequence[DiffLine], is_expanded: object = False) -> list[LineBlock]:
    """Return the lines of a diff. Long unchanged parts are folded unless `is_expanded` is set."""
    return render_diff_lines(lines, is_expanded=bool(is_expanded))


@register.simple_tag
def split_parts(lines: Sequence[DiffLine], is_expanded: object = False) -> list[SplitBlock]:
    """Return the lines of a diff side by side. Long unchanged parts are folded as in `diff_parts`."""
    return render_split_lines(lines, is_expanded=bool(is_expanded))


@register.simple_tag
def changed_lines(lines: Sequence[DiffLine]) -> list[RenderedLine]:
    """Return the given changed lines of a diff as HTML, without context lines."""
    return render_changed_lines(lines)


@register.simple_tag
def file_urls(agent: Agent) -> dict[str, str]:
    """Return the URLs of the agent's quarantined and invalid files by path."""
    get_url = build_url_format("files:detail", agent.workspace.slug)
    return {file.path: get_url(file.pk) for file in get_agent_files(agent).unusable_files}


class ProblemParts(NamedTuple):
    """A problem of a build that begins with the path of a file."""

    path: str
    text: str
    url: str


@register.simple_tag
def split_problem(problem: str, urls: dict[str, str]) -> ProblemParts:
    """Split a problem such as “docs/AGENTS.md: quarantined.” if the path is in `urls`."""
    path, colon, text = problem.partition(":")
    return ProblemParts(path, f"{colon}{text}", urls.get(path, ""))


@register.simple_tag
def agent_files(agent: Agent) -> AgentFiles:
    """Return the unusable files and the persona files of an agent, for its own page."""
    return get_agent_files(agent)
