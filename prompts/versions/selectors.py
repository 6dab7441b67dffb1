"""The questions asked about prompts; every one names its workspace."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import QuerySet

from personas.models import Agent, Content, Workspace
from prompts.assembly.segments import Segment
from prompts.models import AgentPrompt, LabelMove, PromptLabel, PromptVersion
from prompts.versions.lockfile import base_of, unpacked_parts
from prompts.versions.segments import digests_in, unpacked


def prompts_of(workspace: Workspace | int) -> QuerySet[AgentPrompt]:
    rows = AgentPrompt.objects.in_workspace(workspace).filter(is_live=True)
    return rows.select_related("agent", "channel", "latest").order_by("agent__name", "channel__name", "pk")


def prompt_of(agent: Agent, channel_slug: str) -> AgentPrompt | None:
    return prompts_of(agent.workspace_id).filter(agent=agent, channel__slug=channel_slug).first()


def versions_of(prompt: AgentPrompt) -> QuerySet[PromptVersion]:
    """Newest first, without the heavy columns."""
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    return rows.defer("segments", "sizes", "lockfile").order_by("-number")


def labels_of(prompt: AgentPrompt) -> QuerySet[PromptLabel]:
    rows = PromptLabel.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    return rows.select_related("version").order_by("name")


def earlier_place(prompt: AgentPrompt, label: str, number: int) -> LabelMove | None:
    """The last move that led a label to a version before this one: where it would go back to."""
    moves = LabelMove.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, label=label)
    earlier = moves.filter(version__number__lt=number).select_related("version")
    return earlier.order_by("-sequence").defer("version__segments", "version__lockfile").first()


def segments_of(version: PromptVersion) -> tuple[Segment, ...]:
    """As they were built."""
    return unpacked(version.segments, contents_of(version.workspace_id, digests_in(version.segments)))


def segments_of_both(
    one: PromptVersion, other: PromptVersion
) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """Of two versions of a workspace; most of their words are the same, and are asked for once."""
    digests = {*digests_in(one.segments), *digests_in(other.segments)}
    contents = contents_of(one.workspace_id, digests)
    return unpacked(one.segments, contents), unpacked(other.segments, contents)


def report_of(version: PromptVersion) -> dict[str, Any]:
    """What was cut, left out, lost or wrong when it was built."""
    return report_in(contents_of(version.workspace_id, [version.report]), version)


def report_in(contents: Mapping[str, bytes | None], version: PromptVersion) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(contents.get(version.report) or b"{}")
    return found


def parts_of(version: PromptVersion) -> dict[str, str]:
    """The whole lockfile: every part with the digest of what it said."""
    base = base_of(version.number, version.lockfile)
    rows = PromptVersion.objects.in_workspace(version.workspace_id).filter(prompt=version.prompt_id)
    earlier = rows.filter(number__gte=base, number__lt=version.number).order_by("number")
    before = earlier.values_list("lockfile", flat=True) if base < version.number else ()
    return unpacked_parts([*before, version.lockfile])


def text_of(version: PromptVersion) -> str:
    return "".join([segment.text for segment in segments_of(version)])


def contents_of(workspace: Workspace | int, digests: Iterable[str]) -> dict[str, bytes | None]:
    rows = Content.objects.in_workspace(workspace).filter(digest__in=list(digests))
    return {
        digest: None if data is None else bytes(data) for digest, data in rows.values_list("digest", "data")
    }
