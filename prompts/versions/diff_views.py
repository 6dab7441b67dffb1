"""Two versions beside each other: the whole page of it, and a glance at what one version changed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path

from core.text.diff import Line, Span
from personas.tenancy.middleware import WorkspaceRequest
from prompts.assembly.segments import Segment
from prompts.builds.compiler import tokens_in
from prompts.models import PRODUCTION, AgentPrompt, PromptLabel
from prompts.page_lookup import found_prompt, found_version
from prompts.provenance.origins import told_of
from prompts.versions.diff import SectionDiff, VersionDiff, compare, section_words
from prompts.versions.selectors import labels_of, segments_of_both
from prompts.versions.timeline import labels_by_version

MOST_MOVED = 40
# A glance: so many sections, and so many lines of each.
PEEK_SECTIONS, PEEK_LINES = 3, 8
EVERYTHING = "all"


@dataclass(frozen=True)
class Glance:
    """The first changed lines of a section, and how many more there are."""

    section: SectionDiff
    lines: Sequence[Line]
    more: int


def diff(request: WorkspaceRequest, prompt: int, before: int, after: int) -> HttpResponse:
    """In the order of the address: the sides can be swapped."""
    row = found_prompt(request, prompt)
    old, new = found_version(row, before), found_version(row, after)
    segments = segments_of_both(old, new)
    found = compare(*segments, tokens_in)
    labels = list(labels_of(row))
    here = labels_by_version(row, labels)
    is_whole = request.GET.get("show") == EVERYTHING
    context = {
        "agent": row.agent,
        "prompt": row,
        "before": old,
        "after": new,
        "diff": found,
        "is_whole": is_whole,
        "shown": whole_text(found, segments[1]) if is_whole else found.changed,
        "sides": [(version, here.get(version.pk, [])) for version in (old, new)],
        "steps": steps(row, before, after),
        "others": others(row, labels, after),
    }
    return render(request, "prompts/versions/diff.html", context | moved(request, found))


def moved(request: WorkspaceRequest, found: VersionDiff) -> dict[str, Any]:
    some = found.moved[:MOST_MOVED]
    told = told_of(request.workspace, [one.origin for one in some])
    return {
        "moved": [(one, told[one.origin]) for one in some if one.origin in told],
        "more_moved": max(0, len(found.moved) - MOST_MOVED),
    }


def whole_text(found: VersionDiff, segments: Sequence[Segment]) -> list[SectionDiff]:
    """Every section, with the lines of those that are the same."""
    words = section_words(segments)
    return [
        replace(section, lines=unchanged(words.get(section.name, ""))) if section.state == "same" else section
        for section in found.sections
    ]


def unchanged(words: str) -> list[Line]:
    return [Line("same", (Span(line),), at, at) for at, line in enumerate(words.split("\n"), start=1)]


def steps(prompt: AgentPrompt, before: int, after: int) -> dict[str, tuple[int, int] | None]:
    """The change before and the change after this one, where the two are neighbours."""
    if after - before != 1:
        return {}
    return {
        "earlier": (before - 1, before) if before > 1 else None,
        "later": (after, after + 1) if after < prompt.last_number else None,
    }


def others(prompt: AgentPrompt, labels: Sequence[PromptLabel], number: int) -> list[tuple[str, int]]:
    """What else a version is usually compared with: where production and the latest stand."""
    places = [(label.name, label.version.number) for label in labels if label.name == PRODUCTION]
    if prompt.latest:
        places.append(("latest", prompt.latest.number))
    return [(name, other) for name, other in places if other != number]


def peek(request: WorkspaceRequest, prompt: int, number: int) -> HttpResponse:
    """A glance at what a version changed, for a card beside the link that leads to all of it."""
    row = found_prompt(request, prompt)
    old, new = found_version(row, number - 1), found_version(row, number)
    found = compare(*segments_of_both(old, new), tokens_in)
    context = {
        "prompt": row,
        "version": new,
        "diff": found,
        "glances": [glance(section) for section in found.changed[:PEEK_SECTIONS]],
        "more": max(0, len(found.changed) - PEEK_SECTIONS),
    }
    return render(request, "prompts/versions/_peek.html", context)


def glance(section: SectionDiff) -> Glance:
    changed = [line for line in section.lines if line.kind != "same"]
    return Glance(section, list(islice(changed, PEEK_LINES)), max(0, len(changed) - PEEK_LINES))


urlpatterns: list[URLPattern] = [
    path("prompts/<int:prompt>/diff/<int:before>/<int:after>/", diff, name="diff"),
    path("prompts/<int:prompt>/versions/<int:number>/peek/", peek, name="peek"),
]
