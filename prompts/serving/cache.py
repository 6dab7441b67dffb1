"""A version's words, ready to be filled: read once per process, for they never change."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cachetools import LRUCache
from django.db.models import Count, Max

import prompts.assembly.layouts  # noqa: F401
from core.db.workspace_scope import workspace_scope
from personas.models import Content, Erasure
from prompts.assembly.slots import Slots
from prompts.models import PromptVersion
from prompts.serving.errors import VersionErased
from prompts.serving.rendered_prompt import (
    RenderedPrompt,
    RenderPart,
    build_render_parts,
    render_prompt,
    render_slots,
)
from prompts.versions.segments import list_content_digests, unpack_segments

if TYPE_CHECKING:
    from prompts.serving.resolve import Resolution

K = TypeVar("K")
V = TypeVar("V")
MAX_RESOLUTIONS, MAX_VERSIONS = 20_000, 500


class SharedLRUCache(LRUCache[K, V]):
    """Least-recently-used cache of cachetools, shared by the threads of a process."""

    def __init__(self, maxsize: int) -> None:
        super().__init__(maxsize)
        self._lock = Lock()

    def find(self, key: K) -> V | None:
        with self._lock:
            return self.get(key)

    def store(self, key: K, value: V) -> None:
        with self._lock:
            self[key] = value

    def discard(self, key: K) -> None:
        with self._lock:
            if key in self:
                del self[key]

    def clear(self) -> None:
        with self._lock:
            super().clear()


# Reader, agent, channel, label and verb.
ResolutionKey = tuple[str, str, str, str, str]


def _new_resolution_cache() -> "SharedLRUCache[ResolutionKey, Resolution]":
    return SharedLRUCache(MAX_RESOLUTIONS)


def _new_version_cache() -> "SharedLRUCache[int, CachedVersion]":
    return SharedLRUCache(MAX_VERSIONS)


@dataclass
class ServingCache:
    """One process's memory; losing it costs a few queries and nothing else."""

    guesses: "SharedLRUCache[ResolutionKey, Resolution]" = field(default_factory=_new_resolution_cache)
    words: "SharedLRUCache[int, CachedVersion]" = field(default_factory=_new_version_cache)


PROCESS_CACHE = ServingCache()


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
VERSION_COLUMNS = (
    "number",
    "digest",
    "layout",
    "segments",
    "tools",
    "tokens",
    "created_at",
    "workspace_id",
    "prompt_id",
    "sizes",
    "report",
)


class ErasureState(NamedTuple):
    """Counted as well as dated: of two at once the earlier may come to light last."""

    number: int
    last_at: datetime


@dataclass(frozen=True)
class CachedVersion:
    """The unfilled text of a version, and what is told along with it."""

    version_id: int
    number: int
    digest: str
    layout: str
    tokens: int
    created_at: datetime
    parts: tuple[RenderPart, ...]
    # The definitions for the provider's interface, as JSON; empty when there are none.
    tools: str
    # What a reader should know: cuts, problems, records without a place.
    warnings: tuple[str, ...]
    timezone: str
    # How the workspace's erasures stood when this was read.
    erasures: ErasureState
    # Of the version itself: the first members of every answer's JSON.
    told: str
    # As it was last filled: calls that say the same, as most do within a minute, get the same sheet.
    last: list[RenderedPrompt] = field(default_factory=list, compare=False, repr=False)

    def sheet(self, slots: Slots) -> RenderedPrompt:
        said = render_slots(self.parts, slots)
        for held in self.last:
            if held.said == said:
                return held
        made = render_prompt(self.parts, said, self.told)
        self.last[:] = [made]
        return made


def get_erasure_state(workspace_id: int) -> ErasureState:
    rows = Erasure.objects.in_workspace(workspace_id)
    said = rows.aggregate(count=Count("pk"), last_at=Max("at"))
    return ErasureState(said["count"], said["last_at"] or EPOCH)


def get_cached_version(
    recall: ServingCache, workspace_id: int, version_id: int, erasures: ErasureState
) -> CachedVersion:
    """From memory, unless something was erased in the workspace since it was read."""
    held = recall.words.find(version_id)
    if held is None or held.erasures != erasures:
        recall.words.discard(version_id)
        with workspace_scope(workspace_id):
            held = load_cached_version(workspace_id, version_id, erasures)
        recall.words.store(version_id, held)
    return held


def load_cached_version(workspace_id: int, version_id: int, erasures: ErasureState) -> CachedVersion:
    version = PromptVersion.objects.in_workspace(workspace_id).only(*VERSION_COLUMNS).get(pk=version_id)
    contents = require_contents(workspace_id, list_content_digests(version.segments, version.tools))
    parts = build_render_parts(unpack_segments(version.segments, contents))
    return CachedVersion(
        version.pk,
        version.number,
        version.digest,
        version.layout,
        version.tokens,
        version.created_at,
        parts,
        contents[version.tools].decode() if version.tools else "",
        list_build_warnings(version),
        next((zone for part in parts if (zone := part.stretch.slot_data.get("timezone"))), ""),
        erasures,
        render_version_json(version),
    )


def list_build_warnings(version: PromptVersion) -> tuple[str, ...]:
    """From the report of the build; it may have gone with erased words, and then says nothing."""
    rows = Content.objects.in_workspace(version.workspace_id).filter(digest=version.report)
    data = rows.values_list("data", flat=True).first()
    report = json.loads(bytes(data)) if data else {}
    cut = [f"{count} characters of {name} were cut." for name, count in report.get("cut", {}).items()]
    lost = [f"The layout has no place for {name}." for name in report.get("lost", [])]
    return (*report.get("problems", []), *cut, *lost)


def render_version_json(version: PromptVersion) -> str:
    """With a comma behind it: more follows."""
    told = {
        "version": {
            "number": version.number,
            "digest": version.digest,
            "layout": version.layout,
            "created_at": version.created_at.isoformat().replace("+00:00", "Z"),
        },
        "digest": version.digest,
        # As it was built: what a call adds is not counted.
        "tokens": {
            "total": version.tokens,
            "sections": {section: tokens for section, (_, tokens) in version.sizes.items()},
        },
    }
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))[1:-1] + ","


def require_contents(workspace_id: int, digests: Iterable[str]) -> dict[str, bytes]:
    """The data of each; a version is handed out whole or not at all."""
    rows = Content.objects.in_workspace(workspace_id).filter(digest__in=list(digests))
    found = dict(rows.values_list("digest", "data"))
    if None in found.values():
        raise VersionErased
    return {digest: bytes(data) for digest, data in found.items() if data is not None}
