"""A version's words, ready to be filled: read once per process, for they never change."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from django.db.models import Count, Max

# Each layout registers the renderers of its slots when it is imported.
import prompts.assembly.layouts  # noqa: F401
from personas.models import Content, Erasure
from prompts.assembly.slots import Stretch, skeleton
from prompts.models import PromptVersion
from prompts.serving.recalling import Recall
from prompts.serving.refusals import Erased
from prompts.storing import digests_in, unpacked

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = (
    "number",
    "digest",
    "layout",
    "segments",
    "tools",
    "tokens",
    "created_at",
    "workspace_id",
    "prompt_id",
)


class Erasures(NamedTuple):
    """Counted as well as dated: of two at once the earlier may come to light last."""

    number: int
    last_at: datetime


@dataclass(frozen=True)
class Words:
    """The unfilled text of a version, and what is told along with it."""

    version_id: int
    number: int
    digest: str
    layout: str
    tokens: int
    created_at: datetime
    stretches: tuple[Stretch, ...]
    # The definitions for the provider's interface, as JSON; empty when there are none.
    tools: str
    timezone: str
    # How the workspace's erasures stood when this was read.
    erasures: Erasures


def erasures_in(workspace_id: int) -> Erasures:
    rows = Erasure.objects.in_workspace(workspace_id)
    said = rows.aggregate(count=Count("pk"), last_at=Max("at"))
    return Erasures(said["count"], said["last_at"] or NEVER)


def words_of(recall: Recall, workspace_id: int, version_id: int, erasures: Erasures) -> Words:
    """From memory, unless something was erased in the workspace since it was read."""
    held = recall.words.get(version_id)
    if held is None or held.erasures != erasures:
        recall.words.drop(version_id)
        held = read_words(workspace_id, version_id, erasures)
        recall.words.put(version_id, held)
    return held


def read_words(workspace_id: int, version_id: int, erasures: Erasures) -> Words:
    version = PromptVersion.objects.in_workspace(workspace_id).only(*COLUMNS).get(pk=version_id)
    contents = contents_of(workspace_id, digests_in(version.segments, version.tools))
    stretches = skeleton(unpacked(version.segments, contents))
    return Words(
        version.pk,
        version.number,
        version.digest,
        version.layout,
        version.tokens,
        version.created_at,
        stretches,
        contents[version.tools].decode() if version.tools else "",
        next((zone for stretch in stretches if (zone := stretch.given.get("timezone"))), ""),
        erasures,
    )


def contents_of(workspace_id: int, digests: Iterable[str]) -> dict[str, bytes]:
    """The data of each; a version is handed out whole or not at all."""
    rows = Content.objects.in_workspace(workspace_id).filter(digest__in=list(digests))
    found = dict(rows.values_list("digest", "data"))
    if None in found.values():
        raise Erased
    return {digest: bytes(data) for digest, data in found.items() if data is not None}
