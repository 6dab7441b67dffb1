"""Diff pages: the comparison of two versions, and the preview card of what one version changed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path

from core.text.diff import DiffLine, DiffSpan
from personas.tenancy.middleware import WorkspaceRequest
from prompts.assembly.segments import Segment
from prompts.models import PRODUCTION, AgentPrompt, PromptLabel
from prompts.page_lookup import get_prompt_or_404, get_version_or_404
from prompts.publishing.builds.tokens import count_tokens_cached
from prompts.publishing.provenance.origins import describe_origins
from prompts.publishing.versions.diff import SectionDiff, VersionDiff, compare_segments, join_section_texts
from prompts.publishing.versions.selectors import (
    get_definition_pair,
    get_prompt_labels,
    get_segment_pair,
    get_skill_file_pair,
)
from prompts.publishing.versions.timeline import group_labels_by_version

MAX_MOVED_SEGMENTS = 40
# The preview card shows this many sections, and this many lines of each.
MAX_PEEK_SECTIONS, MAX_PEEK_LINES = 3, 8
SHOW_ALL = "all"


@dataclass(frozen=True)
class SectionPeek:
    """The first changed lines of a section, and how many more there are."""

    section: SectionDiff
    lines: Sequence[DiffLine]
    more: int


def version_diff(request: WorkspaceRequest, prompt: int, before: int, after: int) -> HttpResponse:
    """Show the differences between two versions; a user can swap the sides, so `before` may be the newer."""
    row = get_prompt_or_404(request, prompt)
    old, new = get_version_or_404(row, before), get_version_or_404(row, after)
    segments = get_segment_pair(old, new)
    diff = compare_segments(
        *segments,
        count_tokens_cached,
        tools=get_definition_pair(old, new),
        skill_files=get_skill_file_pair(old, new),
        sizes=(old.sizes, new.sizes),
    )
    labels = list(get_prompt_labels(row))
    labels_by_version = group_labels_by_version(row, labels)
    is_whole = request.GET.get("show") == SHOW_ALL
    context = {
        "agent": row.agent,
        "prompt": row,
        "before": old,
        "after": new,
        "diff": diff,
        "is_whole": is_whole,
        "is_split": request.GET.get("view") == "split",
        "shown": list_full_sections(diff, segments[1]) if is_whole else diff.changed,
        "sides": [(version, labels_by_version.get(version.pk, [])) for version in (old, new)],
        "steps": get_neighbour_diffs(row, before, after),
        "others": list_comparison_targets(row, labels, after),
    }
    return render(request, "prompts/versions/diff.html", context | build_moved_context(request, diff))


def build_moved_context(request: WorkspaceRequest, diff: VersionDiff) -> dict[str, Any]:
    segments = diff.moved[:MAX_MOVED_SEGMENTS]
    origin_labels = describe_origins(request.workspace, [segment.origin for segment in segments])
    return {
        "moved": [
            (segment, origin_labels[segment.origin])
            for segment in segments
            if segment.origin in origin_labels
        ],
        "more_moved": max(0, len(diff.moved) - MAX_MOVED_SEGMENTS),
    }


def list_full_sections(diff: VersionDiff, segments: Sequence[Segment]) -> list[SectionDiff]:
    """List all sections; unchanged ones with their text as lines."""
    texts = join_section_texts(segments)
    return [
        replace(section, lines=build_unchanged_lines(texts.get(section.name, "")))
        if section.status == "same"
        else section
        for section in diff.sections
    ]


def build_unchanged_lines(text: str) -> list[DiffLine]:
    return [DiffLine("same", (DiffSpan(line),), at, at) for at, line in enumerate(text.split("\n"), start=1)]


def get_neighbour_diffs(prompt: AgentPrompt, before: int, after: int) -> dict[str, tuple[int, int] | None]:
    """Return the previous and the next pair of versions, if the two compared versions are consecutive."""
    if after - before != 1:
        return {}
    return {
        "earlier": (before - 1, before) if before > 1 else None,
        "later": (after, after + 1) if after < prompt.last_number else None,
    }


def list_comparison_targets(
    prompt: AgentPrompt, labels: Sequence[PromptLabel], number: int
) -> list[tuple[str, int]]:
    """List the usual versions to compare with, production and latest, without the version `number` itself."""
    targets = [(label.name, label.version.number) for label in labels if label.name == PRODUCTION]
    if prompt.latest:
        targets.append(("latest", prompt.latest.number))
    return [(name, other) for name, other in targets if other != number]


def version_peek(request: WorkspaceRequest, prompt: int, number: int) -> HttpResponse:
    """Render the preview card of what a version changed, shown next to the link to the full diff."""
    row = get_prompt_or_404(request, prompt)
    old, new = get_version_or_404(row, number - 1), get_version_or_404(row, number)
    diff = compare_segments(
        *get_segment_pair(old, new),
        count_tokens_cached,
        tools=get_definition_pair(old, new),
        skill_files=get_skill_file_pair(old, new),
        sizes=(old.sizes, new.sizes),
    )
    changed = diff.all_changed
    context = {
        "prompt": row,
        "version": new,
        "diff": diff,
        "glances": [build_section_peek(section) for section in changed[:MAX_PEEK_SECTIONS]],
        "more": max(0, len(changed) - MAX_PEEK_SECTIONS),
    }
    return render(request, "prompts/versions/_peek.html", context)


def build_section_peek(section: SectionDiff) -> SectionPeek:
    changed = [line for line in section.lines if line.kind != "same"]
    return SectionPeek(section, list(islice(changed, MAX_PEEK_LINES)), max(0, len(changed) - MAX_PEEK_LINES))


urlpatterns: list[URLPattern] = [
    path("prompts/<int:prompt>/diff/<int:before>/<int:after>/", version_diff, name="diff"),
    path("prompts/<int:prompt>/versions/<int:number>/peek/", version_peek, name="peek"),
]
