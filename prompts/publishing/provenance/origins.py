"""Describe origins of prompt text for pages: kind, name, revision, author and URL of the record."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import CharField, Q, QuerySet, TextField, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Substr
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.text.shorten import shorten_text
from personas.models import (
    Agent,
    Channel,
    Identity,
    Memory,
    Responsibility,
    Revision,
    Soul,
    Tool,
    UserProfile,
    Workspace,
    WorkspaceOwned,
)
from personas.ui.navigation import build_url_format
from prompts.assembly.segments import Origin, is_record_id
from prompts.models import PromptSettings
from skills.models import ContextFile, Skill

PRODUCT_NAME = "Dramatis"
MAX_NAME_LENGTH = 80


class RecordKind(NamedTuple):
    """A kind of record: its label, its URL namespace, and the field that identifies a record in URLs."""

    label: str | Promise
    family: str
    model: type[WorkspaceOwned]
    key: str = "pk"


RECORD_KINDS: dict[str, RecordKind] = {
    "identity": RecordKind(_("Identity"), "identities", Identity, "slug"),
    "soul": RecordKind(_("Soul"), "souls", Soul, "slug"),
    "user_profile": RecordKind(_("User profile"), "user-profiles", UserProfile, "slug"),
    "agent": RecordKind(_("Agent"), "agents", Agent, "slug"),
    "responsibility": RecordKind(_("Responsibility"), "responsibilities", Responsibility),
    "memory": RecordKind(_("Memory"), "memories", Memory),
    "tool": RecordKind(_("Tool"), "tools", Tool, "name"),
    "channel": RecordKind(_("Channel"), "channels", Channel, "slug"),
    "skill": RecordKind(_("Skill"), "skills", Skill, "name"),
    "context_file": RecordKind(_("File"), "files", ContextFile),
    "prompt_settings": RecordKind(_("Prompt settings"), "prompt-settings", PromptSettings, "level_key"),
}

RecordKey = tuple[str, int]
RevisionKey = tuple[str, int, int]


@dataclass(frozen=True)
class OriginLabel:
    """An origin for display."""

    kind: str
    label: str
    name: str = ""
    revision: int = 0
    author: str = ""
    url: str = ""
    # Text for display if the context file was changed or deleted after the used revision; else empty.
    file_change: str = ""
    file_change_url: str = ""
    # The slug, name or id of the record in its URLs.
    key: str = ""

    @property
    def is_layout(self) -> bool:
        return self.kind == "layout"


LAYOUT_LABEL = OriginLabel("layout", PRODUCT_NAME)


def describe_origins(
    workspace: Workspace,
    origins: Iterable[Origin],
    revisions: Mapping[RevisionKey, tuple[str, str]] | None = None,
    url_keys: Mapping[RecordKey, str] | None = None,
) -> dict[Origin, OriginLabel]:
    """Label every origin, with at most three queries for any number of origins and kinds.

    Callers that have loaded the revisions or the records pass `revisions` and `url_keys` to save queries.
    """
    records = {origin for origin in origins if origin.kind in RECORD_KINDS}
    settings = {origin for origin in records if origin.kind == PromptSettings.kind}
    records -= settings
    keyed = {origin for origin in records if is_record_id(origin.id)}
    if revisions is None:
        revisions = describe_revisions(workspace, list_revision_keys(keyed))
    keys = {**(url_keys or {})}
    keys |= get_url_keys(workspace, [one for one in keyed if (one.kind, int(one.id)) not in keys])
    urls = RevisionUrls(workspace)
    labels = {
        origin: describe_record_origin(origin, revisions, keys, urls)
        if origin in keyed
        else describe_unkeyed_origin(workspace, origin)
        for origin in records
    }
    return labels | describe_settings_origins(workspace, settings)


def describe_record_origin(
    origin: Origin,
    revisions: Mapping[RevisionKey, tuple[str, str]],
    keys: Mapping[RecordKey, str],
    urls: "RevisionUrls",
) -> OriginLabel:
    kind, number = RECORD_KINDS[origin.kind], int(origin.id)
    name, author = revisions.get((origin.kind, number, origin.revision), ("", ""))
    key = keys.get((origin.kind, number))
    url = urls.get_url(kind.family, key, origin.revision) if kind.family and key is not None else ""
    return OriginLabel(
        origin.kind,
        str(kind.label),
        origin.path or name or gettext("number %(number)s") % {"number": number},
        origin.revision,
        author,
        url,
        key=key or "",
    )


def describe_unkeyed_origin(workspace: Workspace, origin: Origin) -> OriginLabel:
    """Label an origin without a numeric id: an agent given by its slug, or a file given by its path."""
    kind = RECORD_KINDS[origin.kind]
    url = reverse("agents:detail", args=[workspace.slug, origin.id]) if origin.kind == "agent" else ""
    return OriginLabel(
        origin.kind, str(kind.label), origin.path or origin.id, origin.revision, "", url if origin.id else ""
    )


def describe_settings_origins(workspace: Workspace, origins: Iterable[Origin]) -> dict[Origin, OriginLabel]:
    """Label settings by what they apply to (agent, channel, workspace), because they have no name."""
    ids = {int(origin.id): origin for origin in origins if is_record_id(origin.id)}
    if not ids:
        return {}
    rows = PromptSettings.objects.in_workspace(workspace).filter(pk__in=ids)
    url = reverse("prompt-settings:list", args=[workspace.slug])
    label = str(RECORD_KINDS[PromptSettings.kind].label)
    return {
        ids[row.pk]: OriginLabel(row.kind, label, str(row), ids[row.pk].revision, "", url, key=row.level_key)
        for row in rows.select_related("agent", "channel")
    }


class RevisionUrls:
    """URLs of revisions of records. The route of each kind is reversed once."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.formats: dict[str, Callable[..., str]] = {}

    def get_url(self, family: str, key: str, revision: int) -> str:
        if not revision:
            return reverse(f"{family}:detail", args=[self.workspace.slug, key])
        if family not in self.formats:
            self.formats[family] = build_url_format(f"{family}:revision", self.workspace.slug, count=2)
        return self.formats[family](key, revision)


def list_revision_keys(origins: Iterable[Origin]) -> list[RevisionKey]:
    return [(one.kind, int(one.id), one.revision) for one in origins if is_record_id(one.id)]


def describe_revisions(
    workspace: Workspace | int, revision_keys: Iterable[RevisionKey]
) -> dict[RevisionKey, tuple[str, str]]:
    """Return the record's name and the author for each revision, with one query and without long texts."""
    by_kind: dict[str, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
    for kind, key, number in revision_keys:
        by_kind[kind][0].add(key)
        by_kind[kind][1].add(number)
    if not by_kind:
        return {}
    condition = Q()
    for kind, (keys, numbers) in by_kind.items():
        condition |= Q(kind=kind, object_id__in=keys, number__in=numbers)
    name = Coalesce(
        *(KT(f"data__{field}") for field in ("name", "title")),
        Substr(KT("data__text"), 1, MAX_NAME_LENGTH + 1, output_field=TextField()),
    )
    rows = Revision.objects.in_workspace(workspace).filter(condition).annotate(name=name)
    values = rows.values_list("kind", "object_id", "number", "name", "author_label")
    return {
        (kind, key, number): (shorten_text(title or "", MAX_NAME_LENGTH), author)
        for kind, key, number, title, author in values
    }


def get_url_key(record: WorkspaceOwned, kind: str) -> tuple[RecordKey, str]:
    return (kind, record.pk), str(getattr(record, RECORD_KINDS[kind].key))


def get_url_keys(workspace: Workspace | int, origins: Iterable[Origin]) -> dict[RecordKey, str]:
    """Return the slug, name or id that each record has in its URL, with one UNION query for all kinds."""
    ids: dict[str, set[int]] = defaultdict(set)
    for origin in origins:
        ids[origin.kind].add(int(origin.id))
    queries = [query_url_keys(workspace, name, numbers) for name, numbers in sorted(ids.items())]
    if not queries:
        return {}
    return {(name, number): key for name, number, key in queries[0].union(*queries[1:], all=True)}


def query_url_keys(workspace: Workspace | int, name: str, numbers: Iterable[int]) -> "QuerySet[Any, Any]":
    kind = RECORD_KINDS[name]
    rows = kind.model.objects.in_workspace(workspace).filter(pk__in=list(numbers)).order_by()
    rows = rows.annotate(its_kind=Value(name, CharField()), its_key=Cast(kind.key, CharField()))
    return rows.values_list("its_kind", "pk", "its_key")


def find_record(workspace: Workspace | int, kind: str, key: int) -> WorkspaceOwned | None:
    """Return the record or file if it exists in the workspace."""
    if kind not in RECORD_KINDS:
        return None
    return RECORD_KINDS[kind].model.objects.in_workspace(workspace).filter(pk=key).first()


def describe_file_changes(workspace: Workspace | int, origins: Iterable[Origin]) -> dict[Origin, str]:
    """Describe for each origin how its context file has changed after the origin's revision.

    Origins that are no files, and unchanged files, are left out. Runs one query, or none if no origin is a
    file.
    """
    files = {one for one in origins if one.kind == "context_file" and one.revision and is_record_id(one.id)}
    if not files:
        return {}
    rows = ContextFile.objects.in_workspace(workspace).filter(pk__in={int(one.id) for one in files})
    current = {
        pk: (exists, number) for pk, exists, number in rows.values_list("pk", "exists", "latest__number")
    }
    changes = {
        one: describe_file_change(one.revision, *current[int(one.id)])
        for one in files
        if int(one.id) in current
    }
    return {one: change for one, change in changes.items() if change}


def describe_file_change(revision: int, exists: bool, newest: int | None) -> str:
    if not exists:
        return gettext("File deleted")
    if newest is None or newest == revision:
        return ""
    return gettext("File changed, now at revision %(number)s") % {"number": newest}
