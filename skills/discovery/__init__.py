"""Discover the files that a harness (an agent program such as Claude Code) reads in a folder.

The search never leaves the folder, is limited by caps, and gives a reason for each refused file.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import TypeVar

from skills.discovery.filesystem import FileRefused, FileStamp, SafeRoot
from skills.discovery.harnesses import DiscoveryCaps, Harness
from skills.discovery.lookup import list_applicable_files
from skills.discovery.results import DiscoveredFile, DiscoveryResult, Refusal
from skills.discovery.search import ROOT_PATH, Clock, FileSearch, ProgressCallback
from skills.discovery.tree_rules import TreeRules
from skills.discovery.tree_search import TreeSearch

__all__ = [
    "DiscoveredFile",
    "DiscoveryResult",
    "FileStamp",
    "Refusal",
    "discover_files",
    "discover_tree",
    "list_applicable_files",
]

AnySearch = TypeVar("AnySearch", bound=FileSearch)
NO_KNOWN_STAMPS: Mapping[str, FileStamp] = {}


def discover_files(
    root: str | os.PathLike[str],
    working_directory: str,
    harness: Harness,
    *,
    folder: str = "",
    known_stamps: Mapping[str, FileStamp] = NO_KNOWN_STAMPS,
    caps: DiscoveryCaps | None = None,
    allow_hard_links: bool = False,
    clock: Clock = time.monotonic,
    on_progress: ProgressCallback | None = None,
) -> DiscoveryResult:
    """Discover the files that the harness reads when it runs in this working directory.

    `root` is the folder granted by operators. `folder` is the path below `root` that the workspace chose.
    """
    effective_caps = harness.caps.lowest_with(caps or DiscoveryCaps())
    build_search = partial(
        FileSearch, caps=effective_caps, known_stamps=known_stamps, clock=clock, on_progress=on_progress
    )
    return run_search(
        partial(SafeRoot, root, folder, allow_hard_links=allow_hard_links),
        build_search,
        lambda search: search.search_upward(working_directory, harness),
    )


def discover_tree(
    root: str | os.PathLike[str],
    harnesses: Sequence[Harness],
    *,
    folder: str = "",
    known_stamps: Mapping[str, FileStamp] = NO_KNOWN_STAMPS,
    caps: DiscoveryCaps | None = None,
    allow_hard_links: bool = False,
    clock: Clock = time.monotonic,
    on_progress: ProgressCallback | None = None,
) -> DiscoveryResult:
    """Discover the files that any of the harnesses could read if it ran in any folder of the source.

    The result is for all agents. `list_applicable_files` selects the files of one agent from it.
    """
    effective_caps = reduce(
        DiscoveryCaps.lowest_with, [harness.caps for harness in harnesses], caps or DiscoveryCaps()
    )
    build_search = partial(
        TreeSearch, caps=effective_caps, known_stamps=known_stamps, clock=clock, on_progress=on_progress
    )
    return run_search(
        partial(SafeRoot, root, folder, allow_hard_links=allow_hard_links),
        build_search,
        lambda search: search.search_tree(TreeRules(harnesses)),
    )


def run_search(
    open_root: Callable[[], SafeRoot],
    build_search: Callable[[SafeRoot], AnySearch],
    run: Callable[[AnySearch], None],
) -> DiscoveryResult:
    """Run a search below the root. An error that stops the search becomes a refusal of the whole source."""
    try:
        root = open_root()
    except FileRefused as error:
        return build_failed_result(error)
    except OSError as error:
        return build_failed_result(
            FileRefused("source", f"The source cannot be opened: {os.strerror(error.errno or 0)}.")
        )
    with root:
        search = build_search(root)
        try:
            run(search)
        except FileRefused as error:
            search.stop(error)
            return search.build_result(is_complete=False)
        return search.build_result(is_complete=True)


def build_failed_result(error: FileRefused) -> DiscoveryResult:
    return DiscoveryResult((), (), (Refusal(ROOT_PATH, error.rule, error.reason),), 0, 0, is_complete=False)
