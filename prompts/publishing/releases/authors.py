"""Find out who made the changes of a release: authors of changes may not approve them.

A person counts with every identity: on pages, with admin keys, and with bot keys that the person created or
rotated, also after the key ended.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from core.text.shorten import shorten_text
from personas.actors import Actor
from personas.api_keys.selectors import list_key_labels
from personas.models import Agent, AuditEvent, Revision, User
from prompts.models import LabelMove, PromptLabel, PromptVersion, Release, ReleaseItem, VersionPart
from prompts.publishing.labels.approval import get_erasure_base
from prompts.publishing.provenance.causes import describe_cause, get_cause_revision
from prompts.publishing.provenance.origins import MAX_NAME_LENGTH, RECORD_KINDS, RecordKey
from prompts.publishing.releases.file_authors import FILE_KIND, FileHistory, load_file_history
from prompts.publishing.versions.selectors import HEAVY_COLUMNS, list_heavy_columns

# How many prompts are loaded together.
CHUNK_SIZE = 200
# Audit verbs of changes that create no revision of the record.
STATE_VERBS = ("archived", "restored", "erased", "changed context", "inherited context")
# The one agent field that does not affect the prompt text. It is ignored when revisions are compared.
POLICY_FIELD = "release_policy"
# In characters. Shorter texts do not show who the author is: they occur in records of different authors.
MIN_TEXT_LENGTH = 12


@dataclass(frozen=True)
class AuthoredItem:
    """An item of a release with a change that a user made, for display."""

    item: ReleaseItem
    change: str


@dataclass(frozen=True)
class AuthorIdentity:
    """A user, and the labels of everything that the user does: as a member, and with keys."""

    user: User
    labels: frozenset[str]

    @property
    def is_author(self) -> Q:
        return Q(author=self.user) | Q(author_label__in=self.labels)

    @property
    def is_actor(self) -> Q:
        return Q(actor=self.user) | Q(actor_label__in=self.labels)

    def name_label(self, label: str) -> str:
        """Return with which key the user did something; empty for the user's own name."""
        return "" if label == self.user.email else " " + _("as %(who)s") % {"who": label}


def load_identity(release: Release, user: User, since: datetime | None) -> AuthorIdentity:
    """Return a user with all labels. Addresses that the user had before are in the audit log."""
    events = AuditEvent.objects.in_workspace(release.workspace_id).filter(actor=user)
    events = events.filter(at__gte=since) if since else events
    labels = set(events.order_by().values_list("actor_label", flat=True).distinct())
    own = {Actor.person(user).label, Actor.operator(user).label}
    return AuthorIdentity(user, frozenset(labels | own | list_key_labels(release.workspace_id, user)))


@dataclass
class ItemChanges:
    """The changes of a prompt since the version that was released last."""

    item: ReleaseItem
    # The version that was released last; None if there was none.
    before: PromptVersion | None
    causes: list[Mapping[str, Any]] = field(default_factory=list)
    # The revisions of the records that were added, changed or removed; None for a removed one.
    parts: dict[RecordKey, int | None] = field(default_factory=dict)
    # The revisions of the same records in the version that was released last.
    parts_before: dict[RecordKey, int | None] = field(default_factory=dict)

    @property
    def condition(self) -> Q:
        """Select the rows of this prompt by the number of their version."""
        first = self.before.number if self.before else 0
        return Q(number__gt=first, number__lte=self.item.version.number)

    @property
    def since(self) -> datetime | None:
        return self.before.created_at if self.before else None

    @property
    def agent_key(self) -> RecordKey:
        return Agent.kind, self.item.prompt.agent_id

    def is_within(self, at: datetime) -> bool:
        return (self.since is None or at > self.since) and at <= self.item.version.created_at

    def is_contained(self, row: Revision) -> bool:
        """Whether a revision belongs to the changes: it is newer than what was released last, or unreleased.

        A revision may be older than the released version, and yet not in it: a memory that was proposed long
        ago, or a record that was linked only now.
        """
        key = (row.kind, row.object_id)
        used = self.parts.get(key) or 0
        is_newer = row.number > (self.parts_before.get(key) or 0)
        return row.number <= used and (is_newer or self.is_within(row.at))


def list_authored_items(release: Release, items: Sequence[ReleaseItem], user: User) -> list[AuthoredItem]:
    """Return the items that include a change by this user since the last release.

    Changes are the causes of the builds since then, the revisions of the records that changed, and what was
    done to files. The causes alone are not enough: those of a build that failed, or that changed nothing, are
    not stored with a version.
    """
    authored = []
    for start in range(0, len(items), CHUNK_SIZE):
        changes = load_changes(release, items[start : start + CHUNK_SIZE])
        starts = [one.since for one in changes]
        since = None if None in starts else min((one for one in starts if one), default=None)
        search = AuthorSearch(release, changes, load_identity(release, user, since))
        authored += [AuthoredItem(one.item, text) for one in changes if (text := search.find_change(one))]
    return authored


class AuthorSearch:
    """Search the changes of some prompts for those of one user, with a few queries for all of them."""

    def __init__(self, release: Release, changes: Sequence[ItemChanges], identity: AuthorIdentity) -> None:
        self.workspace_id, self.identity = release.workspace_id, identity
        keys = {key for one in changes for key in (*one.parts, one.agent_key)}
        keys |= {key[:2] for one in changes for cause in one.causes if (key := get_cause_revision(cause))}
        self.revisions = self.load_revisions(keys)
        self.events = self.load_events(keys)
        self.files = self.load_files(changes)
        self.texts = self.load_texts(changes)

    def load_revisions(self, keys: set[RecordKey]) -> dict[RecordKey, list[Revision]]:
        """Load the revisions that the user wrote, by record."""
        rows = Revision.objects.in_workspace(self.workspace_id).filter(
            self.identity.is_author, object_id__in={key for _kind, key in keys}
        )
        found: dict[RecordKey, list[Revision]] = {}
        for row in rows.order_by("-number"):
            if (row.kind, row.object_id) in keys:
                found.setdefault((row.kind, row.object_id), []).append(row)
        return found

    def load_events(self, keys: set[RecordKey]) -> dict[RecordKey, list[AuditEvent]]:
        """Load the changes of the user that have no revision, by record."""
        rows = AuditEvent.objects.in_workspace(self.workspace_id).filter(
            self.identity.is_actor, verb__in=STATE_VERBS, object_id__in={key for _kind, key in keys}
        )
        found: dict[RecordKey, list[AuditEvent]] = {}
        for row in rows.order_by("-pk"):
            if (row.kind, row.object_id) in keys:
                found.setdefault((row.kind, row.object_id), []).append(row)
        return found

    def load_files(self, changes: Sequence[ItemChanges]) -> FileHistory:
        files = {key for one in changes for kind, key in one.parts if kind == FILE_KIND}
        return load_file_history(self.workspace_id, files, self.identity.is_actor, self.identity.user.email)

    def load_texts(self, changes: Sequence[ItemChanges]) -> dict[RecordKey, dict[int, Revision]]:
        """Load the revisions that the changed records have now and had before, if the user wrote one of them.

        Versions do not name the revision of the agent itself, so all revisions of it are loaded.
        """
        wanted = Q(pk=None)
        for one in changes:
            for key, used in one.parts.items():
                if key in self.revisions and used:
                    numbers = [used, one.parts_before.get(key) or 0]
                    wanted |= Q(kind=key[0], object_id=key[1], number__in=numbers)
        agents = {one.item.prompt.agent_id for one in changes if one.agent_key in self.revisions}
        wanted |= Q(kind=Agent.kind, object_id__in=agents)
        found: dict[RecordKey, dict[int, Revision]] = {}
        for row in Revision.objects.in_workspace(self.workspace_id).filter(wanted).order_by("number"):
            found.setdefault((row.kind, row.object_id), {})[row.number] = row
        return found

    def find_change(self, one: ItemChanges) -> str:
        """Describe a change of this prompt that the user made; empty if there is none."""
        return (
            self.find_cause(one)
            or self.find_revision(one)
            or self.find_agent_revision(one)
            or self.find_event(one)
            or self.find_file(one)
        )

    def find_cause(self, one: ItemChanges) -> str:
        for cause in reversed(one.causes):
            label, key = str(cause.get("by", "")), get_cause_revision(cause)
            rows = self.revisions.get(key[:2], []) if key else []
            mine = [row for row in rows if key and row.number == key[2]]
            if mine:
                return self.describe_revision(mine[0])
            if label in self.identity.labels:
                return f"{describe_cause(cause, {})}{self.identity.name_label(label)}"
        return ""

    def find_revision(self, one: ItemChanges) -> str:
        for key in one.parts:
            for row in self.revisions.get(key, ()):
                if one.is_contained(row) or self.is_text_restored(one, row):
                    return self.describe_revision(row)
        return ""

    def is_text_restored(self, one: ItemChanges, row: Revision) -> bool:
        """Whether a text that is new in the release was in an earlier revision that the user wrote."""
        key = (row.kind, row.object_id)
        rows, used = self.texts.get(key, {}), one.parts.get(key) or 0
        before = rows.get(one.parts_before.get(key) or 0)
        if row.number >= used or used not in rows:
            return False
        return has_restored_text(row.data, rows[used].data, before.data if before else {})

    def find_agent_revision(self, one: ItemChanges) -> str:
        """Search the revisions of the agent itself, which a version does not name, by their times."""
        rows, until = self.texts.get(one.agent_key, {}), one.item.version.created_at
        for row in self.revisions.get(one.agent_key, ()):
            data, previous = without_policy(row.data), rows.get(row.number - 1)
            if one.is_within(row.at):
                if previous is None or data != without_policy(previous.data):
                    return self.describe_revision(row)
            elif row.at <= until and is_agent_restored(data, list(rows.values()), one.since, until):
                return self.describe_revision(row)
        return ""

    def find_event(self, one: ItemChanges) -> str:
        for key in (*one.parts, one.agent_key):
            for row in self.events.get(key, ()):
                if one.is_within(row.at):
                    kind = RECORD_KINDS[row.kind].label if row.kind in RECORD_KINDS else row.kind
                    text = f"{kind} “{shorten_text(row.object_label, MAX_NAME_LENGTH)}”, {row.verb}"
                    return f"{text}{self.identity.name_label(row.actor_label)}"
        return ""

    def find_file(self, one: ItemChanges) -> str:
        for (kind, key), revision in one.parts.items():
            if kind == FILE_KIND:
                event = self.files.find_event(key, revision, one.since, one.item.version.created_at)
                if event:
                    return event.description
        return ""

    def describe_revision(self, row: Revision) -> str:
        names = [str(row.data.get(name) or "") for name in ("name", "title", "text")]
        name = shorten_text(next((one for one in names if one), ""), MAX_NAME_LENGTH)
        cause = {"kind": row.kind, "id": row.object_id, "revision": row.number}
        key = (row.kind, row.object_id, row.number)
        return f"{describe_cause(cause, {key: (name, '')})}{self.identity.name_label(row.author_label)}"


def without_policy(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != POLICY_FIELD}


def has_restored_text(mine: Mapping[str, Any], used: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether the used data has, in a changed field, a text that `mine` has too, or equals it as a whole."""
    if used == before:
        return False
    return mine == used or any(
        isinstance(value, str)
        and len(value) >= MIN_TEXT_LENGTH
        and value != before.get(name)
        and value == mine.get(name)
        for name, value in used.items()
    )


def is_agent_restored(
    mine: Mapping[str, Any], rows: Sequence[Revision], since: datetime | None, until: datetime
) -> bool:
    """Whether the agent was changed back to a text that the user wrote before the last release."""
    used = [row for row in rows if row.at <= until]
    before = [row for row in used if since and row.at <= since]
    if not before or before[-1].number == used[-1].number:
        return False
    return has_restored_text(mine, without_policy(used[-1].data), without_policy(before[-1].data))


def list_release_authors(release: Release, items: Sequence[ReleaseItem]) -> set[int]:
    """Return the ids of the users who made the changes of a release, for notifications.

    These are the authors of the revisions that caused its builds. Unlike `list_authored_items`, it does not
    look at revisions of builds that failed.
    """
    authors: set[int] = set()
    for start in range(0, len(items), CHUNK_SIZE):
        changes = load_changes(release, items[start : start + CHUNK_SIZE])
        keys = {key for one in changes for cause in one.causes if (key := get_cause_revision(cause))}
        rows = Revision.objects.in_workspace(release.workspace_id).filter(
            author__isnull=False, object_id__in={key for _kind, key, _number in keys}
        )
        columns = rows.values_list("kind", "object_id", "number", "author_id")
        authors |= {author for *key, author in columns if author and tuple(key) in keys}
    return authors


def load_changes(release: Release, items: Sequence[ReleaseItem]) -> list[ItemChanges]:
    released = find_released_versions(release, items)
    changes = {item.prompt_id: ItemChanges(item, released.get(item.prompt_id)) for item in items}
    ranges = reduce(or_, [Q(prompt=prompt) & one.condition for prompt, one in changes.items()])
    versions = PromptVersion.objects.in_workspace(release.workspace_id).filter(ranges)
    for prompt, causes in versions.order_by("number").values_list("prompt_id", "causes"):
        changes[prompt].causes += causes
    parts = VersionPart.objects.in_workspace(release.workspace_id).order_by("version__number")
    columns = ("prompt_id", "kind", "object_id", "revision")
    for prompt, kind, key, revision in parts.filter(version__in=versions.values("pk")).values_list(*columns):
        changes[prompt].parts[kind, key] = revision
    earlier = [
        Q(prompt=prompt, version__number__lte=one.before.number)
        for prompt, one in changes.items()
        if one.before
    ]
    if earlier:
        ids = {key for one in changes.values() for _kind, key in one.parts}
        rows = parts.filter(reduce(or_, earlier), object_id__in=ids)
        for prompt, kind, key, revision in rows.values_list(*columns):
            changes[prompt].parts_before[kind, key] = revision
    return list(changes.values())


def find_released_versions(release: Release, items: Iterable[ReleaseItem]) -> dict[int, PromptVersion]:
    """Return the version of each prompt that was released last, without prompts that never were.

    This is the older of the version that has the label now and the one that had it at the request: the label
    may have been rolled back since. If neither exists, it is the last version that had the label.
    """
    labels = PromptLabel.objects.in_workspace(release.workspace_id).filter(
        prompt__in=[item.prompt_id for item in items], name=release.label
    )
    rows = labels.select_related("version").defer(*list_heavy_columns("version"))
    current = {row.prompt_id: row.version for row in rows}
    released = {}
    for item in items:
        if pair := [one for one in (item.before, current.get(item.prompt_id)) if one]:
            released[item.prompt_id] = min(pair, key=lambda one: one.number)
    moves = LabelMove.objects.in_workspace(release.workspace_id).filter(
        prompt__in={item.prompt_id for item in items} - released.keys(),
        label=release.label,
        version__isnull=False,
    )
    last = moves.select_related("version").defer(*list_heavy_columns("version")).order_by("sequence")
    released |= {move.prompt_id: move.version for move in last if move.version}
    return replace_erasure_builds(release.workspace_id, released)


def replace_erasure_builds(workspace: int, released: Mapping[int, PromptVersion]) -> dict[int, PromptVersion]:
    """Replace versions that an erasure built by the versions from which it built them.

    Changes that waited for approval at the erasure are not in the version that the erasure built, but their
    versions have lower numbers.
    """
    rows = PromptVersion.objects.in_workspace(workspace)
    replaced = dict(released)
    pending = {version.pk: prompt for prompt, version in released.items()}
    while pending:
        built = rows.filter(pk__in=pending).only("number", "causes", "prompt_id")
        bases = {pending[one.pk]: number for one in built if (number := get_erasure_base(one))}
        pending = {}
        for prompt, number in bases.items():
            replaced[prompt] = rows.defer(*HEAVY_COLUMNS).get(prompt=prompt, number=number)
            pending[replaced[prompt].pk] = prompt
    return replaced
