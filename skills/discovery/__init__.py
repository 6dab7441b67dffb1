"""From a folder to the files a harness reads there: confined, bounded, and with a reason for each refusal."""

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
    known: Mapping[str, FileStamp] = NO_KNOWN_STAMPS,
    caps: DiscoveryCaps | None = None,
    clock: Clock = time.monotonic,
    notice: ProgressCallback | None = None,
) -> DiscoveryResult:
    """What the harness reads in this folder; root is an operator's grant, folder a tenant's choice below."""
    lowest = harness.caps.lowered_to(caps or DiscoveryCaps())
    begin = partial(FileSearch, caps=lowest, known=known, clock=clock, notice=notice)
    return run_search(root, folder, begin, lambda search: search.upward(working_directory, harness))


def discover_tree(
    root: str | os.PathLike[str],
    harnesses: Sequence[Harness],
    *,
    folder: str = "",
    known: Mapping[str, FileStamp] = NO_KNOWN_STAMPS,
    caps: DiscoveryCaps | None = None,
    clock: Clock = time.monotonic,
    notice: ProgressCallback | None = None,
) -> DiscoveryResult:
    """What any of the harnesses could read in any folder of the source; `applicable` picks for an agent."""
    lowest = reduce(
        DiscoveryCaps.lowered_to, [harness.caps for harness in harnesses], caps or DiscoveryCaps()
    )
    begin = partial(TreeSearch, caps=lowest, known=known, clock=clock, notice=notice)
    return run_search(root, folder, begin, lambda search: search.whole(TreeRules(harnesses)))


def run_search(
    path: str | os.PathLike[str],
    folder: str,
    begin: Callable[[SafeRoot], AnySearch],
    work: Callable[[AnySearch], None],
) -> DiscoveryResult:
    """Search below the root; whatever ends the search early is its own last refusal."""
    try:
        root = SafeRoot(path, folder)
    except FileRefused as why:
        return build_failed_result(why)
    except OSError as error:
        return build_failed_result(
            FileRefused("source", f"The source cannot be opened: {os.strerror(error.errno or 0)}.")
        )
    with root:
        search = begin(root)
        try:
            work(search)
        except FileRefused as why:
            search.stop(why)
            return search.result(is_complete=False)
        return search.result(is_complete=True)


def build_failed_result(why: FileRefused) -> DiscoveryResult:
    return DiscoveryResult((), (), (Refusal(ROOT_PATH, why.rule, why.reason),), 0, 0, is_complete=False)
