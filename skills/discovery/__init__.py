"""From a folder to the files a harness reads there: confined, bounded, and with a reason for each refusal."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import TypeVar

from skills.discovery.filesystem import Refused, Root, Stamp
from skills.discovery.harnesses import Caps, Harness
from skills.discovery.lookup import applicable
from skills.discovery.results import Found, FoundFile, Refusal
from skills.discovery.search import WHOLE, Clock, Notice, Search
from skills.discovery.tree_rules import TreeRules
from skills.discovery.tree_search import TreeSearch

__all__ = ["Found", "FoundFile", "Refusal", "Stamp", "applicable", "discover", "discover_tree"]

AnySearch = TypeVar("AnySearch", bound=Search)
NONE_KNOWN: Mapping[str, Stamp] = {}


def discover(
    root: str | os.PathLike[str],
    working_directory: str,
    harness: Harness,
    *,
    folder: str = "",
    known: Mapping[str, Stamp] = NONE_KNOWN,
    caps: Caps | None = None,
    clock: Clock = time.monotonic,
    notice: Notice | None = None,
) -> Found:
    """What the harness reads in this folder; root is an operator's grant, folder a tenant's choice below."""
    lowest = harness.caps.lowered_to(caps or Caps())
    begin = partial(Search, caps=lowest, known=known, clock=clock, notice=notice)
    return run(root, folder, begin, lambda search: search.upward(working_directory, harness))


def discover_tree(
    root: str | os.PathLike[str],
    harnesses: Sequence[Harness],
    *,
    folder: str = "",
    known: Mapping[str, Stamp] = NONE_KNOWN,
    caps: Caps | None = None,
    clock: Clock = time.monotonic,
    notice: Notice | None = None,
) -> Found:
    """What any of the harnesses could read in any folder of the source; `applicable` picks for an agent."""
    lowest = reduce(Caps.lowered_to, [harness.caps for harness in harnesses], caps or Caps())
    begin = partial(TreeSearch, caps=lowest, known=known, clock=clock, notice=notice)
    return run(root, folder, begin, lambda search: search.whole(TreeRules(harnesses)))


def run(
    path: str | os.PathLike[str],
    folder: str,
    begin: Callable[[Root], AnySearch],
    work: Callable[[AnySearch], None],
) -> Found:
    """Search below the root; whatever ends the search early is its own last refusal."""
    try:
        root = Root(path, folder)
    except Refused as why:
        return unopened(why)
    except OSError as error:
        return unopened(Refused("source", f"The source cannot be opened: {os.strerror(error.errno or 0)}."))
    with root:
        search = begin(root)
        try:
            work(search)
        except Refused as why:
            search.stop(why)
            return search.result(is_complete=False)
        return search.result(is_complete=True)


def unopened(why: Refused) -> Found:
    return Found((), (), (Refusal(WHOLE, why.rule, why.reason),), 0, 0, is_complete=False)
