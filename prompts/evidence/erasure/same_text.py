"""Find the other records and files of a workspace that contain the text of a record that is to be erased.

Texts are compared by their words: case, punctuation, formatting and white space make no difference. A record
or file is listed if it contains a whole text of the erased record, or one of its sentences or lines. Erasing
does not depend on this search: it goes by record.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from unicodedata import normalize

from django.db.models import F, Q, TextField
from django.db.models.functions import Cast

from personas.erasure.services import ERASABLE_FIELDS
from personas.models import Erasure, Record, Revision, Workspace
from personas.ui.display_names import get_display_name
from prompts.assembly.segments import Origin
from prompts.publishing.provenance.origins import RECORD_KINDS, describe_origins
from skills.models import ContextFile, FileRevision

ERASABLE_MODELS: dict[str, type[Record]] = {model.kind: model for model in ERASABLE_FIELDS}
# Fields whose whole text is searched for even if it is short: the text of a memory, and the name of a person.
SHORT_FIELDS = {"memory": ("text",), "user_profile": ("name",)}
# In characters, after normalization. Shorter texts are ignored: they occur in too many unrelated records.
MIN_SHORT_LENGTH, MIN_PHRASE_LENGTH = 4, 12
MAX_PHRASES = 200
# How many matching records and files are listed.
MAX_MATCHES = 200
# How many bytes of files are searched.
MAX_SEARCHED_BYTES = 32 * 1024 * 1024
SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|[\r\n]+")
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class SameText:
    """A record or file that contains text of the record that is to be erased."""

    kind: str
    id: int
    name: str
    url: str
    # Whether the current text contains a match. Otherwise only an earlier revision does.
    is_current: bool

    @property
    def is_erasable(self) -> bool:
        return self.kind in ERASABLE_MODELS

    @property
    def kind_label(self) -> str:
        return get_display_name(self.kind)


class Phrase(NamedTuple):
    """Words to search for, and the longest of them, by which most texts are ruled out quickly."""

    text: str
    key: str


def normalize_words(text: str) -> str:
    """Return the words of a text, in lower case and separated by one space."""
    return " ".join(WORD.findall(normalize("NFKC", text).casefold()))


def build_phrases(record: Record) -> list[Phrase]:
    """Return the texts, sentences and lines of the record and of its revisions, longest first."""
    names = [name for name in ERASABLE_FIELDS.get(type(record), ()) if name not in {"timezone", "extra"}]
    revisions = Revision.objects.in_workspace(record.workspace_id).filter(
        kind=record.kind, object_id=record.pk
    )
    snapshots = [record.snapshot(), *revisions.values_list("data", flat=True)]
    found: set[str] = set()
    for name in names:
        texts = {value for data in snapshots if isinstance(value := data.get(name), str)}
        least = MIN_SHORT_LENGTH if name in SHORT_FIELDS[record.kind] else MIN_PHRASE_LENGTH
        found |= {one for one in map(normalize_words, texts) if len(one) >= least}
        parts = [normalize_words(part) for text in texts for part in SENTENCE_END.split(text)]
        found |= {one for one in parts if len(one) >= MIN_PHRASE_LENGTH}
    longest = sorted(found, key=lambda one: (-len(one), one))[:MAX_PHRASES]
    return [Phrase(one, max(one.split(), key=len)) for one in longest]


def contains_phrase(text: str, phrases: Sequence[Phrase]) -> bool:
    folded = normalize("NFKC", text).casefold()
    likely = [phrase for phrase in phrases if phrase.key in folded]
    if not likely:
        return False
    normalized = f" {' '.join(WORD.findall(folded))} "
    return any(f" {phrase.text} " in normalized for phrase in likely)


def find_same_text(record: Record) -> list[SameText]:
    """List the other records and files that contain text of this record, those that can be erased first.

    All kinds of records are searched with their revisions, and of files the newest and the used revision.
    """
    done = Erasure.objects.in_workspace(record.workspace_id).filter(kind=record.kind, object_id=record.pk)
    phrases = [] if done.exists() else build_phrases(record)
    if not phrases:
        return []
    matches = {**find_records(record, phrases), **find_files(record.workspace_id, phrases)}
    ordered = sorted(matches, key=lambda one: (one[0] not in ERASABLE_MODELS, *one))[:MAX_MATCHES]
    return describe_matches(record.workspace, {key: matches[key] for key in ordered})


Matches = dict[tuple[str, int], tuple[Origin, bool]]


def find_records(record: Record, phrases: Sequence[Phrase]) -> Matches:
    """Search the revisions of all records: the last one of a record is its current content."""
    rows = Revision.objects.in_workspace(record.workspace_id).exclude(kind=record.kind, object_id=record.pk)
    condition = build_key_condition(phrases)
    if condition is not None:
        rows = rows.annotate(stored=Cast("data", TextField())).filter(condition)
    found: Matches = {}
    columns = rows.order_by("number", "pk").values_list("kind", "object_id", "number", "data")
    for kind, key, number, data in columns.iterator(chunk_size=500):
        if contains_phrase("\n".join(iterate_strings(data)), phrases):
            found[kind, key] = Origin(kind, str(key), number), False
    erased = Erasure.objects.in_workspace(record.workspace_id).values_list("kind", "object_id")
    for done in set(erased) & found.keys():
        del found[done]
    current = find_last_revisions(record.workspace_id, found)
    return {
        key: (origin, current.get(key) == origin.revision) for key, (origin, _is_current) in found.items()
    }


def build_key_condition(phrases: Sequence[Phrase]) -> Q | None:
    """Limit revisions to those with a word of a phrase. None if JSON may store such a word differently."""
    keys = {phrase.key for phrase in phrases}
    if not all(key.isascii() for key in keys):
        return None
    condition = Q()
    for key in sorted(keys):
        condition |= Q(stored__icontains=key)
    return condition


def find_last_revisions(workspace: int, keys: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    condition = Q(pk__in=[])
    for kind, key in keys:
        condition |= Q(kind=kind, object_id=key)
    rows = Revision.objects.in_workspace(workspace).filter(condition).order_by("number")
    return {(kind, key): number for kind, key, number in rows.values_list("kind", "object_id", "number")}


def iterate_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from iterate_strings(one)


def find_files(workspace: int, phrases: Sequence[Phrase]) -> Matches:
    """Search the newest and the used revision of each file."""
    files = ContextFile.objects.in_workspace(workspace)
    used = Q(pk__in=files.values("latest")) | Q(pk__in=files.values("active"))
    rows = FileRevision.objects.in_workspace(workspace).filter(used, content__data__isnull=False)
    columns = rows.annotate(path=F("file__path")).order_by("number", "pk")
    found: Matches = {}
    searched = 0
    values = columns.values_list("file_id", "number", "path", "content__data")
    for key, number, path, stored in values.iterator(chunk_size=50):
        data = bytes(stored or b"")
        searched += len(data)
        if searched > MAX_SEARCHED_BYTES:
            break
        if contains_phrase(data.decode(errors="replace"), phrases):
            found["context_file", key] = Origin("context_file", str(key), number, path), True
    return found


def describe_matches(workspace: Workspace, matches: Matches) -> list[SameText]:
    origins = [origin for origin, _is_current in matches.values()]
    labels = describe_origins(workspace, [origin for origin in origins if origin.kind in RECORD_KINDS])
    result = []
    for (kind, key), (origin, is_current) in matches.items():
        label = labels.get(origin)
        name, url = (label.name, label.url) if label else (f"{get_display_name(kind)} {key}", "")
        result.append(SameText(kind, key, name, url, is_current))
    return result
