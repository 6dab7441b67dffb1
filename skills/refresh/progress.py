"""How the looks at one source stand: what is under way, and how the last one ended."""

from dataclasses import dataclass

from skills.models import RefreshRun, RunStatus, Source
from skills.sources.selectors import runs_of

RUNS_SHOWN = 10


@dataclass(frozen=True)
class Progress:
    """The latest runs, newest first."""

    runs: tuple[RefreshRun, ...]

    @property
    def current(self) -> RefreshRun | None:
        """What is under way, else what waits."""
        under_way = [run for run in self.runs if run.status == RunStatus.RUNNING]
        waiting = [run for run in self.runs if run.status == RunStatus.QUEUED]
        return next(iter([*under_way, *waiting]), None)

    @property
    def ended(self) -> RefreshRun | None:
        return next((run for run in self.runs if not run.is_open), None)

    @property
    def ended_pk(self) -> str:
        return str(self.ended.pk) if self.ended else ""

    @property
    def signature(self) -> str:
        """Differs whenever a page would show something else."""
        shown = [run for run in (self.current, self.ended) if run]
        said = [(run.pk, run.status, run.seen, run.read, run.refused) for run in shown]
        return ".".join(str(word) for words in said for word in words)


def progress_of(source: Source) -> Progress:
    return Progress(tuple(runs_of(source)[:RUNS_SHOWN]))


def refusals_of(progress: Progress) -> list[dict[str, str]]:
    """What the last finished look left out; a push that waits for its look tells its own first."""
    for run in (progress.current, progress.ended):
        # What ended the whole look stands in its error already.
        if refusals := [one for one in run.refusals if one["reason"] != run.error] if run else []:
            return refusals
    return []
