"""Find out who made the changes of a release: authors of changes may not approve them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q

from personas.models import Revision, User
from prompts.models import LabelMove, PromptVersion, Release, ReleaseItem, VersionPart
from prompts.provenance.causes import get_cause_revision
from prompts.provenance.origins import RevisionKey

# Prompts in one query.
CHUNK_SIZE = 200


@dataclass
class ItemChanges:
    """The changes of a prompt since the version that was released last."""

    item: ReleaseItem
    # The version that was released last; None if there was none.
    before: PromptVersion | None
    causes: list[Mapping[str, Any]] = field(default_factory=list)
    # Kind, id and revision of the records that were added or changed.
    parts: list[RevisionKey] = field(default_factory=list)

    @property
    def condition(self) -> Q:
        """Select the rows of this prompt by the number of their version."""
        first = self.before.number if self.before else 0
        return Q(number__gt=first, number__lte=self.item.version.number)

    def is_made_by(self, user: User, revisions: Iterable[Revision]) -> bool:
        """Whether the user made one of the changes. `revisions` are those that the user wrote."""
        causes = {key for cause in self.causes if (key := get_cause_revision(cause))}
        latest = {(kind, key): number for kind, key, number in self.parts}
        return any(cause.get("by") == user.email for cause in self.causes) or any(
            (row.kind, row.object_id, row.number) in causes
            or (
                row.number <= latest.get((row.kind, row.object_id), 0)
                and (self.before is None or row.at > self.before.created_at)
            )
            for row in revisions
        )


def list_authored_items(release: Release, items: Sequence[ReleaseItem], user: User) -> list[ReleaseItem]:
    """Return the items with a change that the user made after the version that was released last.

    Changes are the causes of the builds since then, and the revisions of the records that changed. The
    revisions are needed because the causes of a build that failed are not stored with a version.
    """
    authored = []
    for start in range(0, len(items), CHUNK_SIZE):
        changes = load_changes(release, items[start : start + CHUNK_SIZE])
        keys = {key[:2] for one in changes for key in one.parts}
        keys |= {key[:2] for one in changes for cause in one.causes if (key := get_cause_revision(cause))}
        rows = Revision.objects.in_workspace(release.workspace_id).filter(
            author=user, object_id__in={key for _kind, key in keys}
        )
        revisions = [
            row for row in rows.only("kind", "object_id", "number", "at") if (row.kind, row.object_id) in keys
        ]
        authored += [one.item for one in changes if one.is_made_by(user, revisions)]
    return authored


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
    earlier = find_released_versions(release, [item.prompt_id for item in items if item.before is None])
    changes = {
        item.prompt_id: ItemChanges(item, item.before or earlier.get(item.prompt_id)) for item in items
    }
    ranges = reduce(or_, [Q(prompt=prompt) & one.condition for prompt, one in changes.items()])
    versions = PromptVersion.objects.in_workspace(release.workspace_id).filter(ranges)
    prompt_by_version = {}
    for key, prompt, causes in versions.values_list("pk", "prompt_id", "causes"):
        prompt_by_version[key] = prompt
        changes[prompt].causes += causes
    parts = VersionPart.objects.in_workspace(release.workspace_id).filter(
        version__in=versions.values("pk"), revision__isnull=False
    )
    columns = parts.order_by("version_id").values_list("version_id", "kind", "object_id", "revision")
    for version, kind, key, revision in columns:
        changes[prompt_by_version[version]].parts.append((kind, key, revision or 0))
    return list(changes.values())


def find_released_versions(release: Release, prompts: Sequence[int]) -> dict[int, PromptVersion]:
    """Return the last version that had the label of the release, for prompts that no longer have it."""
    moves = LabelMove.objects.in_workspace(release.workspace_id).filter(
        prompt__in=prompts, label=release.label, version__isnull=False
    )
    rows = moves.select_related("version").order_by("sequence")
    return {move.prompt_id: move.version for move in rows if move.version}
