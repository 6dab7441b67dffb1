"""Read prompts, versions and their contents; every query is limited to one workspace."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from core.db.fast import CompiledQuery
from core.db.fields import JOINED_BY
from core.salted_digests import salt_digest
from personas.erasure.services import ERASABLE_FIELDS
from personas.models import Content, Erasure, Workspace, sha256_digest
from prompts.assembly.segments import Origin, Segment, SkillFile
from prompts.models import AgentPrompt, LabelMove, PromptLabel, PromptVersion
from prompts.proof.text_salts import combine_text_salts
from prompts.proof_rows import build_version_row
from prompts.publishing.versions.lockfile import get_base_number, merge_lockfiles
from prompts.publishing.versions.segments import ERASED_TEXT, list_content_digests, unpack_segments
from prompts.publishing.versions.tool_definitions import parse_definitions

# Large columns of versions, which lists do not show.
HEAVY_COLUMNS = ("segments", "sizes", "lockfile", "causes", "skill_files")
ERASABLE_KINDS = frozenset(model.kind for model in ERASABLE_FIELDS)
# Kind and id of a record, as in the origin of a stored segment.
RecordKey = tuple[str, str]
StoredSegment = Mapping[str, Any]


def list_heavy_columns(relation: str) -> list[str]:
    """List the large columns of the version to which a relation points, as arguments of `defer()`."""
    return [f"{relation}__{name}" for name in HEAVY_COLUMNS]


def list_versions(prompt: AgentPrompt) -> QuerySet[PromptVersion]:
    """List the versions, newest first, without the large columns."""
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    return rows.defer("segments", "sizes", "lockfile", "skill_files").order_by("-number")


def get_prompt_labels(prompt: AgentPrompt) -> QuerySet[PromptLabel]:
    rows = PromptLabel.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    return rows.select_related("version").order_by("name")


def find_earlier_move(prompt: AgentPrompt, label: str, number: int) -> LabelMove | None:
    """Find the last move of a label to a version lower than `number`: a roll-back restores that version."""
    moves = LabelMove.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, label=label)
    earlier = moves.filter(version__number__lt=number).select_related("version")
    return earlier.order_by("-sequence").defer("version__segments", "version__lockfile").first()


def get_segments(version: PromptVersion) -> tuple[Segment, ...]:
    contents = get_version_contents(version, list_content_digests(version.segments))
    return unpack_segments(version.segments, contents)


def get_segment_pair(
    one: PromptVersion, other: PromptVersion
) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """Return the segments of two versions of a workspace; shared contents are loaded once."""
    digests = {*list_content_digests(one.segments), *list_content_digests(other.segments)}
    contents = get_contents(one.workspace_id, digests)
    [hidden, other_hidden] = list_tombstoned_digests(one.workspace_id, [one.segments, other.segments])
    return (
        unpack_segments(one.segments, hide_contents(contents, hidden)),
        unpack_segments(other.segments, hide_contents(contents, other_hidden)),
    )


def get_tool_definitions(version: PromptVersion) -> list[dict[str, Any]]:
    """Return the tool definitions of a version; empty if it has none or they were erased."""
    if not version.tools:
        return []
    return parse_definitions(get_version_contents(version, [version.tools]).get(version.tools))


def get_definition_pair(
    one: PromptVersion, other: PromptVersion
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the tool definitions of two versions of a workspace for a comparison."""
    digests = {version.tools for version in (one, other) if version.tools}
    if not digests:
        return [], []
    hidden = list_tombstoned_digests(one.workspace_id, [one.segments, other.segments])
    contents = hide_contents(get_contents(one.workspace_id, digests), set().union(*hidden))
    return parse_definition_pair(contents, one.tools, other.tools)


def parse_definition_pair(
    contents: Mapping[str, bytes | None], one: str, other: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Parse the tool definitions with these two digests.

    Both lists are empty if either were erased: a comparison would show the definitions as removed.
    """
    if any(digest and contents.get(digest) is None for digest in (one, other)):
        return [], []
    return parse_definitions(contents.get(one)), parse_definitions(contents.get(other))


def load_skill_files(version: PromptVersion) -> tuple[SkillFile, ...]:
    """Return the skill files that a version offers, without erased ones."""
    contents = get_contents(version.workspace_id, [row["content"] for row in version.skill_files])
    return tuple(
        [
            SkillFile(row["name"], Origin(**row["origin"]), data)
            for row in version.skill_files
            if (data := contents.get(row["content"])) is not None
        ]
    )


def get_skill_file_pair(one: PromptVersion, other: PromptVersion) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of the skill files in which two versions differ, by name."""
    rows = list_changed_skill_files(one.skill_files, other.skill_files)
    contents = get_contents(one.workspace_id, {row["content"] for side in rows for row in side})
    return read_skill_file_pair(rows, contents)


SkillFileRows = Sequence[Mapping[str, Any]]


def list_changed_skill_files(one: SkillFileRows, other: SkillFileRows) -> tuple[SkillFileRows, SkillFileRows]:
    """Return the rows of two versions whose file the other version does not have under the same name."""
    old, new = ({(row["name"], row["content"]) for row in rows} for rows in (one, other))
    return (
        [row for row in one if (row["name"], row["content"]) not in new],
        [row for row in other if (row["name"], row["content"]) not in old],
    )


def read_skill_file_pair(
    rows: tuple[SkillFileRows, SkillFileRows], contents: Mapping[str, bytes | None]
) -> tuple[dict[str, str], dict[str, str]]:
    old, new = (
        {row["name"]: decode_skill_file(contents.get(row["content"])) for row in side} for side in rows
    )
    return old, new


def decode_skill_file(data: bytes | None) -> str:
    return ERASED_TEXT if data is None else data.decode(errors="replace")


def get_build_report(version: PromptVersion) -> dict[str, Any]:
    """Return the build report: truncated and omitted parts, lost inputs and warnings."""
    return parse_build_report(get_version_contents(version, [version.report]), version)


def parse_build_report(contents: Mapping[str, bytes | None], version: PromptVersion) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(contents.get(version.report) or b"{}")
    return report


def get_lockfile_parts(version: PromptVersion) -> dict[str, str]:
    """Return the full lockfile: every part with the digest of its text."""
    base = get_base_number(version.number, version.lockfile)
    rows = PromptVersion.objects.in_workspace(version.workspace_id).filter(prompt=version.prompt_id)
    earlier = rows.filter(number__gte=base, number__lt=version.number).order_by("number")
    before = earlier.values_list("lockfile", flat=True) if base < version.number else ()
    return merge_lockfiles([*before, version.lockfile])


def get_version_text(version: PromptVersion) -> str:
    return "".join([segment.text for segment in get_segments(version)])


def load_version_texts(workspace: Workspace | int, version_ids: Sequence[int]) -> dict[int, str]:
    """Return the texts of versions by id."""
    if not version_ids:
        return {}
    rows = PromptVersion.objects.in_workspace(workspace).filter(pk__in=version_ids)
    stored = list(rows.values_list("pk", "segments", "tools"))
    digests = {digest for _pk, segments, tools in stored for digest in list_content_digests(segments, tools)}
    contents = get_contents(workspace, digests)
    hidden = list_tombstoned_digests(workspace, [segments for _pk, segments, _tools in stored])
    return {
        pk: "".join([segment.text for segment in unpack_segments(segments, hide_contents(contents, one))])
        for (pk, segments, _tools), one in zip(stored, hidden, strict=True)
    }


def load_skill_file_texts(
    workspace: Workspace | int, version_ids: Sequence[int]
) -> dict[int, dict[str, str]]:
    """Return the skill files of versions by id and name."""
    rows = PromptVersion.objects.in_workspace(workspace).filter(pk__in=version_ids)
    stored = dict(rows.values_list("pk", "skill_files"))
    contents = get_contents(workspace, {row["content"] for files in stored.values() for row in files})
    return {
        pk: {row["name"]: decode_skill_file(contents.get(row["content"])) for row in files}
        for pk, files in stored.items()
    }


def get_contents(workspace: Workspace | int, digests: Iterable[str]) -> dict[str, bytes | None]:
    joined = JOINED_BY.join(digests)
    if not joined:
        return {}
    rows = Content.objects.in_workspace(workspace).filter(digest__in_joined=joined)
    return {
        digest: None if data is None else bytes(data) for digest, data in rows.values_list("digest", "data")
    }


class StoredContent(NamedTuple):
    """The data of a content and its salt. The data of an erased content is None."""

    data: bytes | None
    salt: str

    @property
    def digest(self) -> str:
        """The digest, computed from the data."""
        return "" if self.data is None else salt_digest(sha256_digest(self.data), self.salt)


def get_stored_contents(workspace: Workspace | int, digests: Iterable[str]) -> dict[str, StoredContent]:
    """Return data and salts of contents by digest."""
    rows = Content.objects.in_workspace(workspace).filter(digest__in=list(digests))
    return {
        digest: StoredContent(None if data is None else bytes(data), salt or "")
        for digest, data, salt in rows.values_list("digest", "data", "salt")
    }


def get_content_salts(workspace: Workspace | int, digests: Iterable[str]) -> dict[str, str]:
    """Return the salts of contents by digest. Erased contents have none."""
    rows = Content.objects.in_workspace(workspace).filter(digest__in=list(digests), salt__isnull=False)
    return {digest: salt or "" for digest, salt in rows.values_list("digest", "salt")}


def get_text_salt(version: PromptVersion) -> str:
    """Return the salt of the digest of a version's text. It is wrong if one of the contents was erased."""
    salts = get_content_salts(version.workspace_id, list_content_digests(version.segments))
    return combine_text_salts(version.segments, salts)


# --- erased text ---------------------------------------------------------------------------------------
# A version that contains an erased record is tombstoned: it is refused even if all its contents are still
# stored. Contents stay if another version has the same text from another record.


def list_erasable_records(segments: Iterable[StoredSegment]) -> set[RecordKey]:
    """Return the records in stored segments that are of a kind that can be erased."""
    origins = [row["origin"] for row in segments if "origin" in row]
    return {(origin["kind"], origin["id"]) for origin in origins if origin["kind"] in ERASABLE_KINDS}


def find_tombstones(workspace: Workspace | int, records: Iterable[RecordKey]) -> dict[RecordKey, Erasure]:
    """Return the erasures of these records, with one query. It uses the index of the unique constraint."""
    ids: dict[str, list[int]] = {}
    for kind, key in records:
        ids.setdefault(kind, []).append(int(key))
    if not ids:
        return {}
    condition = Q()
    for kind, keys in ids.items():
        condition |= Q(kind=kind, object_id__in=keys)
    rows = Erasure.objects.in_workspace(workspace).filter(condition).defer("versions", "pending_texts")
    return {(row.kind, str(row.object_id)): row for row in rows}


def list_tombstoned_digests(
    workspace: Workspace | int, segment_lists: Sequence[Iterable[StoredSegment]]
) -> list[set[str]]:
    """Return for each version, given by its segments, the contents with text of records that were erased."""
    records = [list_erasable_records(segments) for segments in segment_lists]
    tombstones = find_tombstones(workspace, set().union(*records))
    return [
        get_hidden_digests(segments, {key: tombstones[key] for key in keys if key in tombstones})
        for segments, keys in zip(segment_lists, records, strict=True)
    ]


def get_hidden_digests(
    segments: Iterable[StoredSegment], tombstones: Mapping[RecordKey, Erasure]
) -> set[str]:
    if not tombstones:
        return set()
    hidden = {digest for erasure in tombstones.values() for digest in erasure.digests}
    for row in segments:
        origin = row.get("origin", {})
        if (origin.get("kind"), origin.get("id")) in tombstones:
            hidden |= list_content_digests([row])
    return hidden


def hide_contents(contents: dict[str, bytes | None], hidden: set[str]) -> dict[str, bytes | None]:
    """Return the contents without the data of the hidden ones, as if it were erased."""
    return contents | dict.fromkeys(hidden & contents.keys()) if hidden else contents


def get_version_contents(version: PromptVersion, digests: Iterable[str]) -> dict[str, bytes | None]:
    """Return contents of a version. Those with text of an erased record are None."""
    [hidden] = list_tombstoned_digests(version.workspace_id, [version.segments])
    return hide_contents(get_contents(version.workspace_id, digests), hidden)


def list_erased_versions(workspace: Workspace | int, ids: Iterable[int]) -> set[int]:
    """Return the ids of these versions that contain an erased record or content, with three queries."""
    rows = query_used_contents(workspace, set(ids))
    if not rows:
        return set()
    digests = {key: list_content_digests(segments, tools) for key, segments, tools in rows}
    erased = set(query_erased_digests(workspace, set().union(*digests.values())))
    records = {key: list_erasable_records(segments) for key, segments, _tools in rows}
    tombstones = find_tombstones(workspace, set().union(*records.values())).keys()
    return {key for key in digests if digests[key] & erased or records[key] & tombstones}


# Compiled, because each label move makes these queries: see prompts/publishing/labels/move_queries.py.
@CompiledQuery
def query_used_contents(
    workspace: Workspace | int, ids: Collection[int]
) -> "QuerySet[PromptVersion, tuple[int, list[dict[str, Any]], str]]":
    rows = PromptVersion.objects.in_workspace(workspace).filter(pk__in=ids)
    return rows.values_list("pk", "segments", "tools")


@CompiledQuery
def query_erased_digests(workspace: Workspace | int, digests: Collection[str]) -> "QuerySet[Content, str]":
    rows = Content.objects.in_workspace(workspace).filter(digest__in=digests, erased_at__isnull=False)
    return rows.values_list("digest", flat=True)


def has_erased_content(version: PromptVersion) -> bool:
    """Return whether some text of the version was erased."""
    return bool(list_erased_versions(version.workspace_id, [version.pk]))


def is_version_intact(version: PromptVersion) -> bool:
    """Whether the row of the version matches its hash, and its contents and text match their digests."""
    if build_version_row(version).hash(version.previous_hash) != version.hash:
        return False
    digests = list_content_digests(version.segments, version.tools)
    stored = get_stored_contents(version.workspace_id, digests)
    if any(content.digest != digest for digest, content in stored.items()):
        return False
    if len(stored) != len(digests):
        return False
    contents = {digest: content.data for digest, content in stored.items()}
    salts = {digest: content.salt for digest, content in stored.items()}
    text = "".join([segment.text for segment in unpack_segments(version.segments, contents)])
    salt = combine_text_salts(version.segments, salts)
    return salt_digest(sha256_digest(text.encode()), salt) == version.text_digest
