"""Where words came from, for people: kind, name, revision, author, and the page to read it on."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import CharField, Q, QuerySet, TextField, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Substr
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

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
from prompts.assembly.segments import Origin, is_record_id
from prompts.models import PromptSettings
from skills.models import ContextFile, Skill

PRODUCT_NAME = "Dramatis"
MAX_NAME_LENGTH = 80


class RecordKind(NamedTuple):
    """A kind of record: its word, its family of pages, and what stands for one record in an address."""

    words: str | Promise
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
    "prompt_settings": RecordKind(_("Prompt settings"), "", PromptSettings),
}

RecordKey = tuple[str, int]
RevisionKey = tuple[str, int, int]


@dataclass(frozen=True)
class OriginLabel:
    """One origin in words."""

    kind: str
    words: str
    name: str = ""
    revision: int = 0
    author: str = ""
    url: str = ""
    # What has happened to it since, where that is worth a word.
    news: str = ""
    news_url: str = ""
    # What stands for the record in its addresses.
    key: str = ""

    @property
    def is_ours(self) -> bool:
        return self.kind == "layout"


LAYOUT_LABEL = OriginLabel("layout", PRODUCT_NAME)


def describe_origins(
    workspace: Workspace,
    origins: Iterable[Origin],
    said: Mapping[RevisionKey, tuple[str, str]] | None = None,
    known: Mapping[RecordKey, str] | None = None,
) -> dict[Origin, OriginLabel]:
    """Every origin with its words; at most three queries, whatever their number and kinds.

    Whoever has loaded the records knows what stands for them in addresses, and need not ask for that.
    """
    wanted = {origin for origin in origins if origin.kind in RECORD_KINDS}
    levels = {origin for origin in wanted if origin.kind == PromptSettings.kind}
    wanted -= levels
    keyed = {origin for origin in wanted if is_record_id(origin.id)}
    if said is None:
        said = describe_revisions(workspace, list_revision_keys(keyed))
    keys = {**(known or {})}
    keys |= get_url_keys(workspace, [one for one in keyed if (one.kind, int(one.id)) not in keys])
    found = {
        origin: describe_record_origin(workspace, origin, said, keys)
        if origin in keyed
        else describe_unkeyed_origin(workspace, origin)
        for origin in wanted
    }
    return found | describe_settings_origins(workspace, levels)


def describe_record_origin(
    workspace: Workspace,
    origin: Origin,
    said: Mapping[RevisionKey, tuple[str, str]],
    keys: Mapping[RecordKey, str],
) -> OriginLabel:
    kind, number = RECORD_KINDS[origin.kind], int(origin.id)
    name, author = said.get((origin.kind, number, origin.revision), ("", ""))
    key = keys.get((origin.kind, number))
    url = (
        get_revision_url(workspace, kind.family, key, origin.revision)
        if kind.family and key is not None
        else ""
    )
    return OriginLabel(
        origin.kind,
        str(kind.words),
        origin.path or name or gettext("number %(number)s") % {"number": number},
        origin.revision,
        author,
        url,
        key=key or "",
    )


def describe_unkeyed_origin(workspace: Workspace, origin: Origin) -> OriginLabel:
    """Words of an agent's own settings name it by its slug; a file may be known by its path alone."""
    kind = RECORD_KINDS[origin.kind]
    url = reverse("agents:detail", args=[workspace.slug, origin.id]) if origin.kind == "agent" else ""
    return OriginLabel(
        origin.kind, str(kind.words), origin.path or origin.id, origin.revision, "", url if origin.id else ""
    )


def describe_settings_origins(workspace: Workspace, origins: Iterable[Origin]) -> dict[Origin, OriginLabel]:
    """Settings have no name of their own: they are those of an agent, a channel or all of the workspace."""
    ids = {int(origin.id): origin for origin in origins if is_record_id(origin.id)}
    if not ids:
        return {}
    rows = PromptSettings.objects.in_workspace(workspace).filter(pk__in=ids)
    url = reverse("prompt-settings:list", args=[workspace.slug])
    words = str(RECORD_KINDS[PromptSettings.kind].words)
    return {
        ids[row.pk]: OriginLabel(row.kind, words, str(row), ids[row.pk].revision, "", url)
        for row in rows.select_related("agent", "channel")
    }


def get_revision_url(workspace: Workspace, family: str, key: Any, revision: int) -> str:
    if not revision:
        return reverse(f"{family}:detail", args=[workspace.slug, key])
    return reverse(f"{family}:revision", args=[workspace.slug, key, revision])


def list_revision_keys(origins: Iterable[Origin]) -> list[RevisionKey]:
    return [(one.kind, int(one.id), one.revision) for one in origins if is_record_id(one.id)]


def describe_revisions(
    workspace: Workspace | int, wanted: Iterable[RevisionKey]
) -> dict[RevisionKey, tuple[str, str]]:
    """What each revision called its record, and who wrote it; one query, without the long texts."""
    by_kind: dict[str, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
    for kind, key, number in wanted:
        by_kind[kind][0].add(key)
        by_kind[kind][1].add(number)
    if not by_kind:
        return {}
    asked = Q()
    for kind, (keys, numbers) in by_kind.items():
        asked |= Q(kind=kind, object_id__in=keys, number__in=numbers)
    name = Coalesce(
        *(KT(f"data__{field}") for field in ("label", "name", "title")),
        Substr(KT("data__text"), 1, MAX_NAME_LENGTH + 1, output_field=TextField()),
    )
    rows = Revision.objects.in_workspace(workspace).filter(asked).annotate(name=name)
    found = rows.values_list("kind", "object_id", "number", "name", "author_label")
    return {
        (kind, key, number): (shorten_name(said or ""), author) for kind, key, number, said, author in found
    }


def shorten_name(name: str) -> str:
    """A memory has no name but its words."""
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…"


def get_url_key(record: WorkspaceOwned, kind: str) -> tuple[RecordKey, str]:
    return (kind, record.pk), str(getattr(record, RECORD_KINDS[kind].key))


def get_url_keys(workspace: Workspace | int, origins: Iterable[Origin]) -> dict[RecordKey, str]:
    """What stands for each record in its address; one query for all kinds."""
    ids: dict[str, set[int]] = defaultdict(set)
    for origin in origins:
        ids[origin.kind].add(int(origin.id))
    asked = [query_url_keys(workspace, name, numbers) for name, numbers in sorted(ids.items())]
    if not asked:
        return {}
    return {(name, number): key for name, number, key in asked[0].union(*asked[1:], all=True)}


def query_url_keys(workspace: Workspace | int, name: str, numbers: Iterable[int]) -> "QuerySet[Any, Any]":
    kind = RECORD_KINDS[name]
    rows = kind.model.objects.in_workspace(workspace).filter(pk__in=list(numbers)).order_by()
    rows = rows.annotate(its_kind=Value(name, CharField()), its_key=Cast(kind.key, CharField()))
    return rows.values_list("its_kind", "pk", "its_key")


def find_record(workspace: Workspace | int, kind: str, key: int) -> WorkspaceOwned | None:
    """The record or file itself, if the workspace has it."""
    if kind not in RECORD_KINDS:
        return None
    return RECORD_KINDS[kind].model.objects.in_workspace(workspace).filter(pk=key).first()


def describe_file_changes(workspace: Workspace | int, origins: Iterable[Origin]) -> dict[Origin, str]:
    """By origin, what has become of its file since; unchanged ones are not told. One query, or none."""
    files = {one for one in origins if one.kind == "context_file" and one.revision and is_record_id(one.id)}
    if not files:
        return {}
    rows = ContextFile.objects.in_workspace(workspace).filter(pk__in={int(one.id) for one in files})
    now = {
        pk: (is_there, number)
        for pk, is_there, number in rows.values_list("pk", "is_there", "newest__number")
    }
    told = {one: describe_file_change(one.revision, *now[int(one.id)]) for one in files if int(one.id) in now}
    return {one: words for one, words in told.items() if words}


def describe_file_change(revision: int, is_there: bool, newest: int | None) -> str:
    if not is_there:
        return gettext("Source gone")
    if newest is None or newest == revision:
        return ""
    return gettext("Source changed: revision %(number)s now") % {"number": newest}
