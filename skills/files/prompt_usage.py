"""Which revisions of context files prompts contain, and the sentence about it for users.

The app `prompts` knows what prompts contain and may not be imported here, so it registers its functions in
PROMPT_USAGE_SOURCES when it starts.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from personas.models import Workspace
from skills.models import ContextFile, FileStatus

# The numbers of the revisions that prompts contain, by file id. A file that no prompt contains may be absent.
RevisionNumbers = dict[int, set[int]]


@dataclass(frozen=True)
class PromptUsageSource:
    """The functions that answer which revisions prompts contain."""

    list_revisions: Callable[[Workspace | int, Collection[int]], RevisionNumbers]
    # A value that changes whenever the revisions in prompts may have changed.
    get_fingerprint: Callable[[Workspace | int], object]


PROMPT_USAGE_SOURCES: list[PromptUsageSource] = []


def get_prompt_usage(workspace: Workspace | int, files: Iterable[ContextFile]) -> RevisionNumbers:
    """Return the revision numbers of these files that prompts contain, in a fixed number of queries."""
    numbers: RevisionNumbers = {file.pk: set() for file in files}
    for source in PROMPT_USAGE_SOURCES if numbers else ():
        for file_id, found in source.list_revisions(workspace, list(numbers)).items():
            numbers[file_id] |= found
    return numbers


def get_prompt_usage_fingerprint(workspace: Workspace | int) -> list[object]:
    return [source.get_fingerprint(workspace) for source in PROMPT_USAGE_SOURCES]


def describe_usage(file: ContextFile, contained: Collection[int]) -> str:
    """Return a sentence on which revision of the file prompts contain now.

    `contained` are the revision numbers that prompts contain. The active revision may be in no prompt: no
    agent's rules match the file, another file comes before it, or the layout leaves it out.
    """
    used = file.active
    if used is None:
        return describe_unused(file, contained)
    # A file with a problem was found, but its content could not be read: the active revision is older.
    is_latest = used.pk == file.latest_id and file.exists and not file.problem
    if used.number in contained:
        template = (
            _("This revision is live in prompts.")
            if is_latest
            else _("Prompts keep using revision %(number)s.")
        )
    elif contained:
        template = _("Revision %(number)s is live, but prompts still contain revision %(held)s.")
    else:
        template = (
            _("This revision is live, but no prompt contains it.")
            if is_latest
            else _("Revision %(number)s is live, but no prompt contains it.")
        )
    return template % {"number": used.number, "held": format_numbers(contained)}


def describe_unused(file: ContextFile, contained: Collection[int]) -> str:
    """Return the sentence for a file without a active revision."""
    if contained:
        message = _("No revision is live, but prompts still contain revision %(held)s.")
        return message % {"held": format_numbers(contained)}
    is_waiting = file.file_kind == "skill" and file.status in {FileStatus.NEW, FileStatus.CHANGED}
    return _("Not used in prompts until someone trusts it.") if is_waiting else _("Not used in any prompt.")


def format_numbers(numbers: Collection[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def describe_usages(files: Collection[ContextFile]) -> dict[int, str]:
    """Return a sentence for each file of one workspace, by file id."""
    workspace = next((file.workspace_id for file in files), 0)
    numbers = get_prompt_usage(workspace, files)
    return {file.pk: describe_usage(file, numbers[file.pk]) for file in files}
