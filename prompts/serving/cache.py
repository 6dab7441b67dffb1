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
from core.db.workspace_scope import within
from personas.models import Content, Erasure
from prompts.assembly.slots import Slots
from prompts.models import PromptVersion
from prompts.serving.errors import Erased
from prompts.serving.rendered_prompt import Part, Sheet, laid_out, parts_of, said_by
from prompts.versions.segments import digests_in, unpacked

if TYPE_CHECKING:
    from prompts.serving.resolve import Guess

K = TypeVar("K")
V = TypeVar("V")
GUESSES, WORDS = 20_000, 500


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
Question = tuple[str, str, str, str, str]


def _guesses() -> "SharedLRUCache[Question, Guess]":
    return SharedLRUCache(GUESSES)


def _words() -> "SharedLRUCache[int, Words]":
    return SharedLRUCache(WORDS)


@dataclass
class Recall:
    """One process's memory; losing it costs a few queries and nothing else."""

    guesses: "SharedLRUCache[Question, Guess]" = field(default_factory=_guesses)
    words: "SharedLRUCache[int, Words]" = field(default_factory=_words)


PROCESS = Recall()


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
    "sizes",
    "report",
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
    parts: tuple[Part, ...]
    # The definitions for the provider's interface, as JSON; empty when there are none.
    tools: str
    # What a reader should know: cuts, problems, records without a place.
    warnings: tuple[str, ...]
    timezone: str
    # How the workspace's erasures stood when this was read.
    erasures: Erasures
    # Of the version itself: the first members of every answer's JSON.
    told: str
    # As it was last filled: calls that say the same, as most do within a minute, get the same sheet.
    last: list[Sheet] = field(default_factory=list, compare=False, repr=False)

    def sheet(self, slots: Slots) -> Sheet:
        said = said_by(self.parts, slots)
        for held in self.last:
            if held.said == said:
                return held
        made = laid_out(self.parts, said, self.told)
        self.last[:] = [made]
        return made


def erasures_in(workspace_id: int) -> Erasures:
    rows = Erasure.objects.in_workspace(workspace_id)
    said = rows.aggregate(count=Count("pk"), last_at=Max("at"))
    return Erasures(said["count"], said["last_at"] or NEVER)


def words_of(recall: Recall, workspace_id: int, version_id: int, erasures: Erasures) -> Words:
    """From memory, unless something was erased in the workspace since it was read."""
    held = recall.words.find(version_id)
    if held is None or held.erasures != erasures:
        recall.words.discard(version_id)
        with within(workspace_id):
            held = read_words(workspace_id, version_id, erasures)
        recall.words.store(version_id, held)
    return held


def read_words(workspace_id: int, version_id: int, erasures: Erasures) -> Words:
    version = PromptVersion.objects.in_workspace(workspace_id).only(*COLUMNS).get(pk=version_id)
    contents = contents_of(workspace_id, digests_in(version.segments, version.tools))
    parts = parts_of(unpacked(version.segments, contents))
    return Words(
        version.pk,
        version.number,
        version.digest,
        version.layout,
        version.tokens,
        version.created_at,
        parts,
        contents[version.tools].decode() if version.tools else "",
        warnings_of(version),
        next((zone for part in parts if (zone := part.stretch.given.get("timezone"))), ""),
        erasures,
        told_of(version),
    )


def warnings_of(version: PromptVersion) -> tuple[str, ...]:
    """From the report of the build; it may have gone with erased words, and then says nothing."""
    rows = Content.objects.in_workspace(version.workspace_id).filter(digest=version.report)
    data = rows.values_list("data", flat=True).first()
    report = json.loads(bytes(data)) if data else {}
    cut = [f"{count} characters of {name} were cut." for name, count in report.get("cut", {}).items()]
    lost = [f"The layout has no place for {name}." for name in report.get("lost", [])]
    return (*report.get("problems", []), *cut, *lost)


def told_of(version: PromptVersion) -> str:
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


def contents_of(workspace_id: int, digests: Iterable[str]) -> dict[str, bytes]:
    """The data of each; a version is handed out whole or not at all."""
    rows = Content.objects.in_workspace(workspace_id).filter(digest__in=list(digests))
    found = dict(rows.values_list("digest", "data"))
    if None in found.values():
        raise Erased
    return {digest: bytes(data) for digest, data in found.items() if data is not None}
