"""From pushed files to those a harness reads, as if they lay in a folder: same rules, kinds, order and caps.

Seen are the files that a rule names. Scripts and references in a skill's folder belong to the skill and
need no rule. All else that is unnamed gives one line for the whole push, however many files there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from hashlib import sha256

from skills.archives.bundle import check_size, label
from skills.archives.paths import PATH_RULES, check_path
from skills.archives.rule_match import Misplaced, Naming
from skills.discovery import NONE_KNOWN, Found, FoundFile, Refusal
from skills.discovery.filesystem import Refused, Stamp
from skills.discovery.harnesses import Caps, Harness, Kind
from skills.discovery.lookup import chain
from skills.discovery.search import WHOLE, Stopped
from skills.discovery.tree_rules import TreeRules

# What a file holds, or the stamp of what was stored earlier.
Pushed = bytes | Stamp
Sent = Pushed | Refusal


def discover_pushed(
    files: Mapping[str, Pushed],
    harnesses: Sequence[Harness],
    *,
    refusals: Iterable[Refusal] = (),
    known: Mapping[str, Stamp] = NONE_KNOWN,
    caps: Caps | None = None,
) -> Found:
    """What any of the harnesses could read in any folder of the push; refusals are those of its reading.

    Those that matter are passed on, so that a file which could not be read does not count as gone.
    """
    refused = {refusal.path: refusal for refusal in refusals}
    if WHOLE in refused:
        return Found((), (), (refused[WHOLE],), 0, 0, is_complete=False)
    lowest = reduce(Caps.lowered_to, [harness.caps for harness in harnesses], caps or Caps())
    look = Look(lowest, known)
    try:
        line = look.whole({**refused, **files}, Naming(TreeRules(harnesses), lowest.depth))
    except Stopped as why:
        return look.result(why, is_complete=False)
    return look.result(line, is_complete=True)


def stamp_of(content: bytes) -> Stamp:
    """Neither time nor place: pushed files are the same when they hold the same."""
    return Stamp(len(content), 0, 0, sha256(content).hexdigest())


class Look:
    """One look at a push: what is found, what refused, and what counts for nothing."""

    def __init__(self, caps: Caps, known: Mapping[str, Stamp]) -> None:
        self.caps, self.known = caps, known
        self.files: dict[str, FoundFile] = {}
        self.refusals: dict[str, Refusal] = {}
        self.seen = self.read = self.bytes = 0

    def result(self, line: Refused | None, *, is_complete: bool) -> Found:
        files = tuple([file for file in self.files.values() if file.kind != "skill"])
        skills = tuple([file for file in self.files.values() if file.kind == "skill"])
        whole = [Refusal(WHOLE, line.rule, line.reason)] if line else []
        refusals = (*self.refusals.values(), *whole)
        return Found(files, skills, refusals, self.seen, self.read, is_complete)

    def whole(self, sent: Mapping[str, Sent], naming: Naming) -> Refused | None:
        """Look at each, and say in one line what is to be said of the rest."""
        if len(sent) > self.caps.entries:
            raise Stopped("entries", f"There are more than {self.caps.entries:,} names to look at.")
        kinds = self.kinds_of(sent, naming)
        packages = {folder_of(path) for path, kind in kinds.items() if kind == "skill"}
        idle: list[str] = []
        for path, kind in kinds.items():
            if kind:
                self.take(kind, path, sent[path])
            elif packages.isdisjoint(chain(folder_of(path))):
                idle.append(path)
            elif isinstance(lost := sent[path], Refusal):
                self.refuse(path, Refused(lost.rule, lost.reason))
        return unnamed(idle, sent) if idle else None

    def kinds_of(self, sent: Mapping[str, Sent], naming: Naming) -> dict[str, Kind | None]:
        """In the order of a search on disk; whatever cannot lie there is refused."""
        kinds: dict[str, Kind | None] = {}
        for path in sorted(sent, key=tree_order):
            try:
                check_way(path, sent[path])
                kinds[path] = naming.kind_of(path)
            except Misplaced as why:
                self.refuse(why.folder, why)
            except Refused as why:
                self.refuse(path, why)
        return kinds

    def take(self, kind: Kind, path: str, sent: Sent) -> None:
        if self.seen == self.caps.files:
            most = f"There are more than {self.caps.files:,} files to read"
            raise Stopped("files", f"{most}; {path} and all that follow were left out.")
        self.seen += 1
        try:
            self.keep(kind, path, sent)
        except Refused as why:
            self.refuse(path, why)

    def keep(self, kind: Kind, path: str, sent: Sent) -> None:
        if isinstance(sent, Refusal):
            raise Refused(sent.rule, sent.reason)
        stamp = sent if isinstance(sent, Stamp) else stamp_of(sent)
        check_size(stamp.size, self.caps)
        if self.bytes + stamp.size > self.caps.total_bytes:
            raise Refused("total", f"All files together have more than {self.caps.total_bytes:,} bytes.")
        is_new = isinstance(sent, bytes) and self.known.get(path) != stamp
        self.bytes += stamp.size
        self.read += is_new
        self.files[path] = FoundFile(path, kind, stamp, sent if isinstance(sent, bytes) and is_new else None)

    def refuse(self, path: str, why: Refused) -> None:
        if len(self.refusals) >= self.caps.files:
            raise Stopped("files", f"More than {self.caps.files:,} refusals; the rest was left out.")
        self.refusals.setdefault(path, Refusal(label(path), why.rule, why.reason))


def check_way(path: str, sent: Sent) -> None:
    """A path that was refused as such has no place among the others, and is shown as it came."""
    if isinstance(sent, Refusal) and sent.rule in PATH_RULES:
        raise Refused(sent.rule, sent.reason)
    check_path(path)


def tree_order(path: str) -> list[tuple[bool, str]]:
    """The files of a folder before the folders in it."""
    *folders, name = path.split("/")
    return [*[(True, folder) for folder in folders], (False, name)]


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def unnamed(idle: list[str], sent: Mapping[str, Sent]) -> Refused:
    """One line, with an example by which a person knows what is meant."""
    example = shorten(idle[0])
    if len(sent) == 1:
        return Refused("unnamed", f"No rule names {example}; no prompt uses it.")
    which = f"{len(idle):,} of the {len(sent):,} files, such as {example}"
    lost = [path for path in idle if isinstance(sent[path], Refusal)]
    more = f" {len(lost):,} of them could not be kept, such as {shorten(lost[0])}." if lost else ""
    return Refused("unnamed", f"No rule names {which}; no prompt uses them.{more}")


def shorten(path: str) -> str:
    return path if len(path) <= 100 else f"…{path[-99:]}"
