"""Record which prompts a page request changes, so that they can be reviewed before the commit.

`move_labels` and `store_versions` report to the recorder of the current request. Outside of pages (API,
workers, commands) there is none. A view that declares to change no prompts has a recorder that raises.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from prompts.models import AgentPrompt, PromptVersion


class UnreviewedChange(Exception):
    """A view without a review step would have changed prompts."""


@dataclass
class PromptChange:
    """A prompt that changes. `after` is None if production is removed."""

    prompt: AgentPrompt
    # The version that the moved label pointed to, or the previous latest version if no label moves.
    before: PromptVersion | None
    after: PromptVersion | None
    # Whether production or the custom label moves. Otherwise the new version waits for a release.
    is_deployed: bool
    # Whether this request creates the version `after`.
    is_new_version: bool
    # The label that moves, if it is not production: bots that request it get another version.
    custom_label: str = ""


@dataclass
class ChangeRecorder:
    """The changes of one request, one for each prompt."""

    # Whether the member has already seen the review, so that the request can be committed.
    is_confirmed: bool = False
    # The name of the view if it must not change prompts; otherwise empty.
    locked_view: str = ""
    changes: dict[int, PromptChange] = field(default_factory=dict)
    new_versions: list[PromptVersion] = field(default_factory=list)
    # The number of prompts that workers build later.
    pending: int = 0

    def record_version(self, version: PromptVersion, previous: PromptVersion | None) -> None:
        prompt = version.prompt
        earlier = self.changes.get(prompt.pk)
        before = earlier.before if earlier else previous
        self.changes[prompt.pk] = PromptChange(prompt, before, version, False, True)
        self.new_versions.append(version)

    def record_move(
        self, prompt: AgentPrompt, before: PromptVersion | None, after: PromptVersion | None
    ) -> None:
        self.check_lock(f"moves production of {prompt}")
        earlier = self.changes.get(prompt.pk)
        if earlier is not None and earlier.is_deployed and not earlier.custom_label:
            before = earlier.before
        self.changes[prompt.pk] = PromptChange(prompt, before, after, True, self.is_new_version(after))

    def record_custom_move(
        self, prompt: AgentPrompt, label: str, before: PromptVersion, after: PromptVersion
    ) -> None:
        """Record the move of a custom label. Of a prompt that changes otherwise too, that change is shown."""
        self.check_lock(f"moves {label} of {prompt}")
        if prompt.pk not in self.changes:
            is_new = self.is_new_version(after)
            self.changes[prompt.pk] = PromptChange(prompt, before, after, True, is_new, custom_label=label)

    def check_lock(self, change: str) -> None:
        if self.locked_view:
            raise UnreviewedChange(f"{self.locked_view} {change} without a review step.")

    def is_new_version(self, version: PromptVersion | None) -> bool:
        """Whether this request creates the version; it may be another object of the same row."""
        return version is not None and any(
            one is version or one.pk == version.pk for one in self.new_versions
        )


_recorder: ContextVar[ChangeRecorder | None] = ContextVar("change_recorder", default=None)


def get_change_recorder() -> ChangeRecorder | None:
    """Return the recorder of the current page request, if there is one."""
    return _recorder.get()


@contextmanager
def forget_changes_on_error() -> Iterator[None]:
    """Forget what the block recorded if it raises: the transaction of the block is rolled back."""
    recorder = _recorder.get()
    if recorder is None:
        yield
        return
    changes, new_versions = dict(recorder.changes), list(recorder.new_versions)
    try:
        yield
    except BaseException:
        recorder.changes, recorder.new_versions = changes, new_versions
        raise


@contextmanager
def record_changes(recorder: ChangeRecorder) -> Iterator[ChangeRecorder]:
    """Record the changes of the block."""
    token = _recorder.set(recorder)
    try:
        yield recorder
    finally:
        _recorder.reset(token)
