"""Run a page action with its review step.

The action runs in a transaction that is committed only if the member has seen which prompts it changes.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

from core.db.before_commit import atomic_with_hooks, before_commit
from personas.models import Workspace, sha256_digest
from personas.ui.responses import UNDO_EFFECT
from prompts.models import AgentPrompt, PromptVersion, ReleaseItem
from prompts.publishing.labels.change_recorder import ChangeRecorder, PromptChange, record_changes
from prompts.publishing.preview.impact import Impact
from prompts.publishing.releases.changes import group_release_changes
from prompts.publishing.review.change_review import ChangeReview, SaveEffect, build_release_review
from prompts.publishing.versions.selectors import HEAVY_COLUMNS, load_version_texts

# Prompt id, and what the prompt will contain: see the functions below.
EffectEntry = tuple[int, str]


def describe_stored_version(version_id: int) -> str:
    return f"version:{version_id}"


def describe_new_text(text_digest: str) -> str:
    """Describe a version that does not exist yet, by the SHA-256 of its text: its own digest has a salt."""
    return f"text:{text_digest}"


def hash_effect(entries: Iterable[EffectEntry]) -> str:
    """Hash the effect of an action on prompts that had a version before."""
    return sha256(repr(sorted(entries)).encode()).hexdigest()


def hash_release_effect(items: Iterable[ReleaseItem]) -> str:
    """Hash the effect of a release, or of a rollback with unsaved items."""
    return hash_effect(
        (item.prompt_id, describe_stored_version(item.version_id)) for item in items if item.before_id
    )


def hash_impact(impact: Impact) -> str:
    """Hash the effect of saving a draft."""
    return hash_effect(
        (one.prompt.pk, describe_new_text(one.text_digest)) for one in impact.affected if one.prompt
    )


T = TypeVar("T")


@dataclass(frozen=True)
class ActionReview:
    """What an action would change. It is rendered after the transaction is rolled back."""

    review: ChangeReview
    effect: SaveEffect
    # Hash of the effect, for the token.
    digest: str
    # Prompts that would no longer have a production version.
    removed: Sequence[AgentPrompt] = ()
    # Prompts that workers would build.
    pending: int = 0


class ReviewRequired(Exception):
    """The action changes prompts, and the member has not seen how. Nothing was saved."""

    def __init__(self, review: ActionReview) -> None:
        super().__init__(review.digest)
        self.review = review


class DryRun(Exception):
    """Roll back an action that needs no review, because the client only asked."""


def run_with_review(
    workspace: Workspace, action: Callable[[], T], *, seen: str | None, is_question: bool = False
) -> T:
    """Run an action and commit it, unless it changes prompts in another way than the member has seen.

    `seen` is the hash of the effect from the token of the review. Raise ReviewRequired, after a rollback,
    with the review to show. With `is_question`, nothing is committed: DryRun is raised if no review is
    needed.
    """
    with record_changes(ChangeRecorder(is_confirmed=seen is not None)) as recorder, atomic_with_hooks():
        result = action()

        def check(_items: list[object]) -> None:
            if is_review_needed(workspace, recorder, seen):
                raise ReviewRequired(build_action_review(workspace, recorder))
            if is_question:
                raise DryRun
            # The review is over: builds after the commit use the ordinary limit, and workers build the rest.
            recorder.is_confirmed = True

        # Registered last, to run after the function that builds prompts before the commit.
        if not before_commit(check, None):
            check([])
        return result


def preview_action(workspace: Workspace, action: Callable[[], object]) -> ActionReview:
    """Run an action, return what it would change, and roll it back."""
    reviews: list[ActionReview] = []
    with suppress(DryRun), record_changes(ChangeRecorder()) as recorder, atomic_with_hooks():
        action()

        def stop(_items: list[object]) -> None:
            reviews.append(build_action_review(workspace, recorder))
            raise DryRun

        if not before_commit(stop, None):
            stop([])
    return reviews[0]


def is_review_needed(workspace: Workspace, recorder: ChangeRecorder, seen: str | None) -> bool:
    """Whether prompts change that had a version before, and not exactly as the member has seen it.

    What workers build later cannot be compared: a member who has seen a review of the action is enough.
    """
    changes = list_changes_to_existing(recorder)
    if not changes:
        return bool(recorder.pending) and seen is None
    return seen is None or seen not in (UNDO_EFFECT, hash_effect(list_effect_entries(workspace, changes)))


def list_changes_to_existing(recorder: ChangeRecorder) -> list[PromptChange]:
    return [change for change in recorder.changes.values() if change.before is not None]


def list_effect_entries(workspace: Workspace, changes: Sequence[PromptChange]) -> list[EffectEntry]:
    new_ids = [change.after.pk for change in changes if change.after and change.is_new_version]
    texts = load_version_texts(workspace, new_ids)
    return [(change.prompt.pk, describe_change(change, texts)) for change in changes]


def describe_change(change: PromptChange, texts: dict[int, str]) -> str:
    if change.after is None:
        return "none"
    return (
        describe_new_text(sha256_digest(texts[change.after.pk].encode()))
        if change.is_new_version
        else describe_stored_version(change.after.pk)
    )


def build_action_review(workspace: Workspace, recorder: ChangeRecorder) -> ActionReview:
    """Build the review of what was recorded. It must be called in the transaction of the action."""
    changes = list(recorder.changes.values())
    existing = list_changes_to_existing(recorder)
    return ActionReview(
        build_release_review(
            workspace, group_release_changes(workspace, load_items(workspace, changes)), is_stored=False
        ),
        get_recorded_effect(changes, recorder.pending),
        hash_effect(list_effect_entries(workspace, existing)),
        [change.prompt for change in changes if change.after is None],
        recorder.pending,
    )


def load_items(workspace: Workspace, changes: Sequence[PromptChange]) -> list[ReleaseItem]:
    """Return the changes as items of a release, so that the same code compares them. They are not saved."""
    ids = {version.pk for change in changes for version in (change.before, change.after) if version}
    rows = PromptVersion.objects.in_workspace(workspace).filter(pk__in=ids).defer(*HEAVY_COLUMNS)
    versions = {version.pk: version for version in rows}
    return [
        ReleaseItem(
            workspace=workspace,
            prompt=change.prompt,
            version=versions[change.after.pk],
            before=versions[change.before.pk] if change.before else None,
        )
        for change in changes
        if change.after is not None
    ]


def get_recorded_effect(changes: Sequence[PromptChange], pending: int) -> SaveEffect:
    labels = sorted({change.custom_label for change in changes if change.custom_label})
    relabelled = sum(bool(change.custom_label) for change in changes)
    deployed = sum(change.is_deployed for change in changes) - relabelled
    waiting = [change.prompt for change in changes if not change.is_deployed]
    reviewed = [prompt for prompt in waiting if prompt.is_reviewed]
    return SaveEffect(
        len(changes) + pending,
        deployed + pending,
        sorted({str(prompt.agent) for prompt in reviewed}),
        len(waiting) - len(reviewed),
        relabelled,
        labels,
    )
