"""Per-process cache of resolved requests, and of prompt versions before their slots are filled.

Versions are immutable, so a cached version is reloaded only after content of its workspace was erased.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from sys import getsizeof
from typing import NamedTuple

import prompts.assembly.layouts  # noqa: F401
from core.db.workspace_scope import workspace_scope
from core.shared_cache import SharedLRUCache, SingleFlight
from personas.models import Content, ErasureCounter
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.slots import Slots
from prompts.models import PromptVersion
from prompts.proof.text_salts import combine_text_salts
from prompts.publishing.versions.segments import list_content_digests, unpack_segments
from prompts.publishing.versions.selectors import find_tombstones, list_erasable_records
from prompts.serving.errors import VersionErased
from prompts.serving.rendered_prompt import (
    RenderedPrompt,
    RenderPart,
    build_render_parts,
    render_prompt,
    render_slots,
)
from prompts.serving.request import Resolution
from prompts.serving.warnings import ReportWarnings, load_report_warnings

MAX_RESOLUTIONS = 20_000
# The cache of versions is limited in bytes, because texts can be long.
MAX_VERSION_BYTES = 64_000_000


# Client name, agent, channel, label and action.
ResolutionKey = tuple[str, str, str, str, str]


def _new_resolution_cache() -> SharedLRUCache[ResolutionKey, Resolution]:
    return SharedLRUCache(MAX_RESOLUTIONS)


def _new_version_cache() -> "SharedLRUCache[int, CachedVersion]":
    return SharedLRUCache(MAX_VERSION_BYTES, get_version_size)


@dataclass
class ServingCache:
    """Resolutions and versions cached in this process. They can be dropped at any time."""

    resolutions: SharedLRUCache[ResolutionKey, Resolution] = field(default_factory=_new_resolution_cache)
    versions: "SharedLRUCache[int, CachedVersion]" = field(default_factory=_new_version_cache)
    # At a cold start, many bots ask for the same prompt at once: one thread resolves and loads it.
    resolving: SingleFlight[ResolutionKey, Resolution] = field(default_factory=SingleFlight)
    # By version id and erasure counter.
    loading: "SingleFlight[tuple[int, int], CachedVersion]" = field(default_factory=SingleFlight)


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


class SaltedInputs(NamedTuple):
    """The inputs of a version, and the salt of all their contents."""

    inputs: PromptInputs
    salt: str


@dataclass(frozen=True)
class CachedVersion:
    """The text of a version before its slots are filled, and the metadata that responses contain."""

    version_id: int
    number: int
    digest: str
    layout: str
    tokens: int
    created_at: datetime
    parts: tuple[RenderPart, ...]
    # Tool definitions for the model provider's API, as JSON; empty when there are none.
    tools: str
    # Warnings of the build: see prompts.serving.warnings.
    warnings: ReportWarnings
    timezone: str
    # The salt of the text digest that the ledger stores.
    salt: str
    # The workspace's erasure counter when this version was loaded. A difference means a new erasure.
    erasures: int
    # The members that describe the version, rendered as JSON. Every JSON response body begins with them.
    json_start: str
    # The last rendering (at most one item). It is reused while the slot texts stay equal: calls without slots
    # differ only in the time, and most calls within one minute are equal.
    last_rendered: list[RenderedPrompt] = field(default_factory=list, compare=False, repr=False)
    # The inputs of the version (at most one item). They are loaded for the first call that changes them.
    inputs: list[SaltedInputs] = field(default_factory=list, compare=False, repr=False)
    # Whether the version was built again for one call.
    is_built_for_call: bool = False

    @property
    def inputs_salt(self) -> str:
        return self.inputs[0].salt if self.inputs else ""

    def render(self, slots: Slots) -> RenderedPrompt:
        slot_texts = render_slots(self.parts, slots)
        for rendered in self.last_rendered:
            if rendered.slot_texts == slot_texts:
                return rendered
        rendered = render_prompt(self.parts, slot_texts, self.json_start)
        self.last_rendered[:] = [rendered]
        return rendered


def get_version_size(version: CachedVersion) -> int:
    """Return about how much memory a cached version needs, in bytes.

    Beside its text, an entry has the last rendering, which is the text and its JSON, and perhaps the inputs.
    These are added later, so they are estimated here.
    """
    texts = [version.tools, version.json_start, *(part.span.text for part in version.parts)]
    return 4 * sum(map(getsizeof, texts)) + 2_000


PROCESS_CACHE = ServingCache()


def get_erasure_number(workspace_id: int) -> int:
    """Return the erasure counter of the workspace. It is missing, which means 0, until the first erasure."""
    return ErasureCounter.objects.in_workspace(workspace_id).values_list("number", flat=True).first() or 0


def get_cached_version(
    cache: ServingCache, workspace_id: int, version_id: int, erasures: int
) -> CachedVersion:
    """Return the version from the cache.

    Load it from the database if it is missing, or if content of the workspace was erased after it was loaded.
    """
    version = cache.versions.find(version_id)
    if version is None or version.erasures != erasures:
        cache.versions.discard(version_id)

        def load() -> CachedVersion:
            with workspace_scope(workspace_id):
                loaded = load_cached_version(workspace_id, version_id, erasures)
            if get_version_size(loaded) <= cache.versions.maxsize:
                cache.versions.store(version_id, loaded)
            return loaded

        version, _ = cache.loading.load((version_id, erasures), load)
    return version


def load_cached_version(workspace_id: int, version_id: int, erasures: int) -> CachedVersion:
    version = PromptVersion.objects.in_workspace(workspace_id).only(*VERSION_COLUMNS).get(pk=version_id)
    # The contents alone do not tell: those of an erased record stay stored if other versions use them.
    if find_tombstones(workspace_id, list_erasable_records(version.segments)):
        raise VersionErased
    contents, salts = require_contents(workspace_id, list_content_digests(version.segments, version.tools))
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
        load_report_warnings(workspace_id, version.report),
        next((zone for part in parts if (zone := part.span.slot_data.get("timezone"))), ""),
        combine_text_salts(version.segments, salts),
        erasures,
        render_version_json(version),
    )


def render_version_json(version: PromptVersion) -> str:
    """Render the JSON members that describe the version, without braces and with a trailing comma.

    Every JSON response body begins with them.
    """
    members = {
        "version": version.number,
        "digest": version.digest,
        "layout": version.layout,
        "created_at": version.created_at.isoformat().replace("+00:00", "Z"),
        # Tokens of the version: of its text as a plain fetch sends it, and of its tool definitions. What
        # a call adds or leaves out is not counted.
        "tokens": {
            "total": version.tokens,
            "text": version.text_tokens,
            "tools": version.tool_tokens,
            "sections": {section: tokens for section, (_, tokens) in version.sizes.items()},
        },
    }
    return json.dumps(members, ensure_ascii=False, separators=(",", ":"))[1:-1] + ","


def require_contents(workspace_id: int, digests: Iterable[str]) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return data and salt of each content by digest. Raise VersionErased if one was erased.

    A version with erased content is not served at all, not even in part.
    """
    contents: dict[str, bytes] = {}
    salts: dict[str, str] = {}
    rows = Content.objects.in_workspace(workspace_id).filter(digest__in=list(digests))
    for digest, data, salt in rows.values_list("digest", "data", "salt"):
        if data is None:
            raise VersionErased
        contents[digest], salts[digest] = bytes(data), salt or ""
    return contents, salts
