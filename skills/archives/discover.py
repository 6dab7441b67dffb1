"""From pushed files to those a harness reads, as if they lay in a folder: same rules, kinds, order and caps.

Seen are the files that a rule names. Scripts and references in a skill's folder belong to the skill and
need no rule. All else that is unnamed gives one line for the whole push, however many files there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from hashlib import sha256

from skills.archives.bundle import check_file_size, format_refusal_path
from skills.archives.paths import PATH_RULE_NAMES, check_path
from skills.archives.rule_match import FolderRefused, PathMatcher
from skills.discovery import NO_KNOWN_STAMPS, DiscoveredFile, DiscoveryResult, Refusal
from skills.discovery.filesystem import FileRefused, FileStamp
from skills.discovery.harnesses import DiscoveryCaps, FileKind, Harness
from skills.discovery.lookup import list_folder_chain
from skills.discovery.search import ROOT_PATH, SearchStopped
from skills.discovery.tree_rules import TreeRules

# What a file holds, or the stamp of what was stored earlier.
PushedContent = bytes | FileStamp
PushedEntry = PushedContent | Refusal


def discover_pushed_files(
    files: Mapping[str, PushedContent],
    harnesses: Sequence[Harness],
    *,
    refusals: Iterable[Refusal] = (),
    known: Mapping[str, FileStamp] = NO_KNOWN_STAMPS,
    caps: DiscoveryCaps | None = None,
) -> DiscoveryResult:
    """What any of the harnesses could read in any folder of the push; refusals are those of its reading.

    Those that matter are passed on, so that a file which could not be read does not count as gone.
    """
    refused = {refusal.path: refusal for refusal in refusals}
    if ROOT_PATH in refused:
        return DiscoveryResult((), (), (refused[ROOT_PATH],), 0, 0, is_complete=False)
    lowest = reduce(
        DiscoveryCaps.lowered_to, [harness.caps for harness in harnesses], caps or DiscoveryCaps()
    )
    look = PushedFileSearch(lowest, known)
    try:
        line = look.whole({**refused, **files}, PathMatcher(TreeRules(harnesses), lowest.depth))
    except SearchStopped as why:
        return look.result(why, is_complete=False)
    return look.result(line, is_complete=True)


def build_stamp(content: bytes) -> FileStamp:
    """Neither time nor place: pushed files are the same when they hold the same."""
    return FileStamp(len(content), 0, 0, sha256(content).hexdigest())


class PushedFileSearch:
    """One look at a push: what is found, what refused, and what counts for nothing."""

    def __init__(self, caps: DiscoveryCaps, known: Mapping[str, FileStamp]) -> None:
        self.caps, self.known = caps, known
        self.files: dict[str, DiscoveredFile] = {}
        self.refusals: dict[str, Refusal] = {}
        self.seen = self.read = self.bytes = 0

    def result(self, line: FileRefused | None, *, is_complete: bool) -> DiscoveryResult:
        files = tuple([file for file in self.files.values() if file.kind != "skill"])
        skills = tuple([file for file in self.files.values() if file.kind == "skill"])
        whole = [Refusal(ROOT_PATH, line.rule, line.reason)] if line else []
        refusals = (*self.refusals.values(), *whole)
        return DiscoveryResult(files, skills, refusals, self.seen, self.read, is_complete)

    def whole(self, sent: Mapping[str, PushedEntry], naming: PathMatcher) -> FileRefused | None:
        """Look at each, and say in one line what is to be said of the rest."""
        if len(sent) > self.caps.entries:
            raise SearchStopped("entries", f"There are more than {self.caps.entries:,} names to look at.")
        kinds = self.kinds_of(sent, naming)
        packages = {get_parent_folder(path) for path, kind in kinds.items() if kind == "skill"}
        idle: list[str] = []
        for path, kind in kinds.items():
            if kind:
                self.take(kind, path, sent[path])
            elif packages.isdisjoint(list_folder_chain(get_parent_folder(path))):
                idle.append(path)
            elif isinstance(lost := sent[path], Refusal):
                self.refuse(path, FileRefused(lost.rule, lost.reason))
        return build_unmatched_error(idle, sent) if idle else None

    def kinds_of(self, sent: Mapping[str, PushedEntry], naming: PathMatcher) -> dict[str, FileKind | None]:
        """In the order of a search on disk; whatever cannot lie there is refused."""
        kinds: dict[str, FileKind | None] = {}
        for path in sorted(sent, key=tree_sort_key):
            try:
                check_pushed_path(path, sent[path])
                kinds[path] = naming.kind_of(path)
            except FolderRefused as why:
                self.refuse(why.folder, why)
            except FileRefused as why:
                self.refuse(path, why)
        return kinds

    def take(self, kind: FileKind, path: str, sent: PushedEntry) -> None:
        if self.seen == self.caps.files:
            most = f"There are more than {self.caps.files:,} files to read"
            raise SearchStopped("files", f"{most}; {path} and all that follow were left out.")
        self.seen += 1
        try:
            self.keep(kind, path, sent)
        except FileRefused as why:
            self.refuse(path, why)

    def keep(self, kind: FileKind, path: str, sent: PushedEntry) -> None:
        if isinstance(sent, Refusal):
            raise FileRefused(sent.rule, sent.reason)
        stamp = sent if isinstance(sent, FileStamp) else build_stamp(sent)
        check_file_size(stamp.size, self.caps)
        if self.bytes + stamp.size > self.caps.total_bytes:
            raise FileRefused("total", f"All files together have more than {self.caps.total_bytes:,} bytes.")
        is_new = isinstance(sent, bytes) and self.known.get(path) != stamp
        self.bytes += stamp.size
        self.read += is_new
        self.files[path] = DiscoveredFile(
            path, kind, stamp, sent if isinstance(sent, bytes) and is_new else None
        )

    def refuse(self, path: str, why: FileRefused) -> None:
        if len(self.refusals) >= self.caps.files:
            raise SearchStopped("files", f"More than {self.caps.files:,} refusals; the rest was left out.")
        self.refusals.setdefault(path, Refusal(format_refusal_path(path), why.rule, why.reason))


def check_pushed_path(path: str, sent: PushedEntry) -> None:
    """A path that was refused as such has no place among the others, and is shown as it came."""
    if isinstance(sent, Refusal) and sent.rule in PATH_RULE_NAMES:
        raise FileRefused(sent.rule, sent.reason)
    check_path(path)


def tree_sort_key(path: str) -> list[tuple[bool, str]]:
    """The files of a folder before the folders in it."""
    *folders, name = path.split("/")
    return [*[(True, folder) for folder in folders], (False, name)]


def get_parent_folder(path: str) -> str:
    return path.rpartition("/")[0]


def build_unmatched_error(idle: list[str], sent: Mapping[str, PushedEntry]) -> FileRefused:
    """One line, with an example by which a person knows what is meant."""
    example = shorten_path(idle[0])
    if len(sent) == 1:
        return FileRefused("unnamed", f"No rule names {example}; no prompt uses it.")
    which = f"{len(idle):,} of the {len(sent):,} files, such as {example}"
    lost = [path for path in idle if isinstance(sent[path], Refusal)]
    more = f" {len(lost):,} of them could not be kept, such as {shorten_path(lost[0])}." if lost else ""
    return FileRefused("unnamed", f"No rule names {which}; no prompt uses them.{more}")


def shorten_path(path: str) -> str:
    return path if len(path) <= 100 else f"…{path[-99:]}"
