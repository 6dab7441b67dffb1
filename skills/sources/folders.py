"""Map the working directory of an agent to folders of its sources, and paths of files to the bot's paths."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from skills.discovery.harnesses import Harness
from skills.discovery.lookup import SearchFolders, get_search_folders, join_path, list_folder_chain
from skills.models import AgentSource, Source, SourceScope
from skills.sources.locations import (
    HOME,
    get_path_below,
    is_absolute_path,
    is_home_path,
    join_location,
)

NO_FOLDERS = SearchFolders([], None)


@dataclass(frozen=True)
class MappedDirectory:
    """The working directory of an agent.

    `absolute` is its path on the bot's machine, or empty if that is unknown. `folders` are the folders that
    a search visits in each source, and `relative` is the working directory in each source, or None if it
    lies outside. `problem` says why the directory could not be used; it is empty if it could.
    """

    absolute: str
    folders: tuple[SearchFolders, ...]
    relative: tuple[str | None, ...]
    problem: str = ""


def get_source_root(source: Source) -> str:
    """Return the folder that workers read, or an empty string for pushed files."""
    allowed_folder = source.allowed_folder.path.rstrip("/") if source.allowed_folder else ""
    return "/".join(part for part in (allowed_folder, source.folder) if part) if allowed_folder else ""


def get_home_folder(use: AgentSource, harness: Harness) -> str:
    """Return the folder of a source that `~` stands for. A source that is only a home directory is `~`."""
    return "" if use.scope == SourceScope.HOME else harness.global_folder


def find_project_use(uses: Sequence[AgentSource]) -> AgentSource:
    """Return the source that relative working directories lie in: the last project, else the last source."""
    return next((use for use in reversed(uses) if use.scope != SourceScope.HOME), uses[-1])


def find_home_use(uses: Sequence[AgentSource]) -> AgentSource | None:
    """Return the source that `~` lies in: the last home directory, else the last that is also a project."""
    for scope in (SourceScope.HOME, SourceScope.BOTH):
        for use in reversed(uses):
            if use.scope == scope:
                return use
    return None


def map_directory(directory: str, uses: Sequence[AgentSource], harness: Harness) -> MappedDirectory:
    """Map a working directory that is absolute, starts with `~`, or is relative to the project's root.

    For a directory outside of all sources, or with `..`, files are read from the project's root.
    """
    if problem := find_directory_problem(directory, uses):
        relative: list[str | None] = [None] * len(uses)
        relative[uses.index(find_project_use(uses))] = ""
        absolute = directory if is_absolute_path(directory) and not has_parent_step(directory) else ""
        return replace(build_mapped_directory(absolute, relative, uses, harness), problem=problem)
    if is_absolute_path(directory):
        relative = [find_folder_in_source(use, directory) for use in uses]
        return build_mapped_directory(directory, relative, uses, harness)
    owner, folder = find_project_use(uses), directory.strip("/")
    if is_home_path(directory):
        home, rest = find_home_use(uses), directory.removeprefix(HOME).strip("/")
        owner = home or owner
        folder = join_path(get_home_folder(home, harness), rest) if home else ""
    absolute = join_location(owner.bot_location, folder) if owner.bot_location else ""
    relative = [find_folder_in_source(use, absolute) if absolute else None for use in uses]
    relative[uses.index(owner)] = folder
    return build_mapped_directory(absolute, relative, uses, harness)


def find_directory_problem(directory: str, uses: Sequence[AgentSource]) -> str:
    """Say why a working directory cannot be used, or return an empty string."""
    if has_parent_step(directory):
        message = _(
            "The working directory %(directory)s contains “..”. Use a path without "
            "it. Until then, files are read from the source's root."
        )
        return message % {"directory": directory}
    if not is_absolute_path(directory) or any(
        find_folder_in_source(use, directory) is not None for use in uses
    ):
        return ""
    roots = list(dict.fromkeys([root for use in uses for root in list_roots(use)]))
    if not roots:
        message = _(
            "The working directory %(directory)s cannot be found because none of the "
            "agent's sources has a location. Use a path relative to a source's root, "
            "or set the location of a source. Until then, files are read from the "
            "root."
        )
        return message % {"directory": directory}
    message = _(
        "The working directory %(directory)s is not below any source root "
        "(%(roots)s). Change the agent's working directory. Until then, files are "
        "read from the root."
    )
    return message % {"directory": directory, "roots": ", ".join(roots)}


def has_parent_step(directory: str) -> bool:
    return ".." in directory.replace("\\", "/").split("/")


def list_roots(use: AgentSource) -> list[str]:
    return [root for root in (use.bot_location, get_source_root(use.source)) if root]


def build_mapped_directory(
    absolute: str, relative: Sequence[str | None], uses: Sequence[AgentSource], harness: Harness
) -> MappedDirectory:
    folders = [
        get_visited_folders(use, folder, uses, harness.caps.depth)
        for use, folder in zip(uses, relative, strict=True)
    ]
    return MappedDirectory(absolute, tuple(folders), tuple(relative))


def find_folder_in_source(use: AgentSource, absolute: str) -> str | None:
    """Return the path of an absolute folder below the source's root, or None if it lies outside.

    The bot's location counts, and the folder that workers read, which is the same on a shared machine.
    """
    below = get_path_below(use.bot_location, absolute)
    return get_path_below(get_source_root(use.source), absolute) if below is None else below


def get_visited_folders(
    use: AgentSource, relative: str | None, uses: Sequence[AgentSource], depth: int
) -> SearchFolders:
    """Return the folders that relative rules visit in a source.

    A folder that also lies in a source with a deeper location is visited only there, but a home directory
    takes no folders from a project. A home directory is visited only above the working directory; a project
    that does not contain it, at its root.
    """
    is_home = use.scope == SourceScope.HOME
    if relative is None:
        return NO_FOLDERS if is_home else get_search_folders("", depth)
    folders = get_search_folders(relative, depth)
    others = [other for other in uses if other is not use and takes_folders(use, other)]
    inner = [nested for other in others if (nested := find_nested_root(use, other, uses))]
    each = [folder for folder in folders.each if not any(is_inside(folder, root) for root in inner)]
    is_owned_here = not any(is_inside(relative, root) for root in inner)
    return SearchFolders(each, folders.project if is_owned_here and not is_home else None)


def takes_folders(use: AgentSource, other: AgentSource) -> bool:
    """Return whether folders of a source are visited only in the other one if that lies deeper."""
    return use.scope == SourceScope.HOME or other.scope != SourceScope.HOME


def find_nested_root(use: AgentSource, other: AgentSource, uses: Sequence[AgentSource]) -> str:
    """Return the folder of a source in which another source lies, or an empty string."""
    return get_path_below(get_root_path(use, uses), get_root_path(other, uses)) or ""


def get_root_path(use: AgentSource, uses: Sequence[AgentSource]) -> str:
    """Return the path by which the roots of an agent's sources are compared, or an empty string.

    That is the location for its bots. If it is unknown, it follows from another source that contains the
    same folder of the workers, or else is that folder, as on a shared machine.
    """
    root = get_source_root(use.source)
    if use.bot_location or not root:
        return use.bot_location
    for other in uses:
        below = get_path_below(get_source_root(other.source), root)
        if other.bot_location and below is not None:
            return join_location(other.bot_location, below)
    return root


def is_inside(folder: str, root: str) -> bool:
    return root in list_folder_chain(folder)


def list_skill_folders(use: AgentSource, folders: Sequence[str], harness: Harness) -> tuple[str, ...]:
    """List the additional skill folders of an agent that lie in this source, relative to its root."""
    below = [find_skill_folder(use, folder, harness) for folder in folders]
    return tuple([folder for folder in below if folder is not None])


def find_outside_folders_problem(
    uses: Sequence[AgentSource], folders: Sequence[str], harness: Harness
) -> str:
    """Say which additional skill folders lie in none of the sources, or return an empty string."""
    outside = [
        folder for folder in folders if all(find_skill_folder(use, folder, harness) is None for use in uses)
    ]
    if not outside:
        return ""
    message = ngettext(
        "The additional skill folder %(folders)s is not in any of the agent's sources, so none of its skills "
        "is offered. Change the folder, or set the location of the source that contains it.",
        "The additional skill folders %(folders)s are not in any of the agent's sources, so none of their "
        "skills is offered. Change the folders, or set the location of the source that contains them.",
        len(outside),
    )
    return message % {"folders": ", ".join(outside)}


def find_skill_folder(use: AgentSource, folder: str, harness: Harness) -> str | None:
    if is_absolute_path(folder):
        return find_folder_in_source(use, folder)
    if is_home_path(folder):
        rest = folder.removeprefix(HOME).strip("/")
        is_home = use.scope != SourceScope.PROJECT
        return join_path(get_home_folder(use, harness), rest) if is_home else None
    return folder.strip("/") if use.scope != SourceScope.HOME else None
