"""The stored contents of a version: its segments, its tool definitions, and what erasures removed from it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from personas.models import Erasure
from personas.ui.display_names import get_display_name
from prompts.assembly.segments import Segment
from prompts.models import PromptVersion
from prompts.publishing.versions.segments import list_content_digests, unpack_segments
from prompts.publishing.versions.selectors import get_version_contents, list_erasable_records
from prompts.publishing.versions.tool_definitions import parse_definitions


class VersionContents(NamedTuple):
    """The segments as built, the erasures that removed text from them, and the tool definitions.

    The definitions are None if they were erased.
    """

    segments: tuple[Segment, ...]
    erasures: Sequence[Erasure]
    tools: list[dict[str, Any]] | None


def load_version_contents(version: PromptVersion) -> VersionContents:
    contents = get_version_contents(version, list_content_digests(version.segments, version.tools))
    erased = {
        digest for digest in list_content_digests(version.segments) if contents.get(digest, b"") is None
    }
    are_tools_erased = version.tools and contents.get(version.tools) is None
    return VersionContents(
        unpack_segments(version.segments, contents),
        list_version_erasures(version, erased) if erased else (),
        None if are_tools_erased else parse_definitions(contents.get(version.tools)),
    )


def list_version_erasures(version: PromptVersion, digests: set[str]) -> Sequence[Erasure]:
    """List the erasures of records in the version, and those that erased one of these contents of it."""
    rows = Erasure.objects.in_workspace(version.workspace_id).order_by("at", "pk")
    records = list_erasable_records(version.segments)
    return [row for row in rows if (row.kind, str(row.object_id)) in records or digests & set(row.digests)]


def describe_erasures(erasures: Sequence[Erasure]) -> str:
    descriptions = "; ".join(
        _("%(kind)s %(number)s on %(day)s: %(reason)s")
        % {
            "kind": get_display_name(one.kind).lower(),
            "number": one.object_id,
            "day": f"{one.at:%Y-%m-%d}",
            "reason": one.reason,
        }
        for one in erasures
    )
    return _("Some text in this prompt has been erased and cannot be shown (%(list)s).") % {
        "list": descriptions
    }
