"""The files of the journal: hash-chained JSON Lines, and a signed head that says how far they are valid.

`endings.journal` is append-only; each line contains the hash of the line before. `endings.head` is replaced
after every run. Lines that it does not cover were left by a crash: they are not read, and the next run
removes them and writes them again. A copy of the folder must copy the head first, which is the order of
the names.
"""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from prompts.evidence.integrity.checkpoint_files import sync_folder
from prompts.evidence.integrity.trusted_keys import TrustedKeys, find_trust_fault, get_trusted_keys
from prompts.proof.canonical import canonical_digest, canonical_json, format_timestamp, parse_canonical_json
from prompts.proof.json_reader import read_json_timestamp, read_record
from prompts.proof.signatures import StatementSignature, is_signature_valid, sign_body
from prompts.proof.signing_keys import PrivateKey

JOURNAL_FILE, HEAD_FILE = "endings.journal", "endings.head"
LINE_DOMAIN, HEAD_DOMAIN = "ending", "endings-head"
# An ending gets its time during its transaction, but is visible only after the commit. So a run also reads
# endings that are dated up to this long before the time through which the journal is complete.
OVERLAP = timedelta(hours=1)
# How much of the end of the file is read first.
TAIL_BYTES = 256 * 1024
# A time before every ending, for a new journal.
BEGINNING = datetime(1970, 1, 2, tzinfo=UTC)

# What ended: `kind`, `workspace`, `id` and `at`, and further keys that depend on the kind.
Ending = dict[str, Any]


class FoundEndings(NamedTuple):
    """Endings in the database. If not all could be read, the journal does not count as complete."""

    endings: Sequence[Ending]
    is_complete: bool = True


# Returns the endings since a time.
ListEndings = Callable[[datetime], FoundEndings]


class JournalError(Exception):
    """The journal was changed, or parts of it are missing."""


@dataclass(frozen=True)
class JournalHead:
    """How far the journal is valid. It contains all endings that happened until `through`."""

    lines: int
    # Size of the journal in bytes.
    size: int
    # Hash of the last line; empty if there is none.
    hash: str
    through: str

    @property
    def through_at(self) -> datetime:
        return read_json_timestamp(self.through, "the time of the journal")


@dataclass(frozen=True)
class Journal:
    """A verified journal: the head, the endings, and the hash of each line."""

    head: JournalHead
    endings: Sequence[Ending]
    hashes: Sequence[str]

    def has_position(self, lines: int, line_hash: str) -> bool:
        """Whether the line with this number has this hash. Line 0 is the beginning."""
        return line_hash == "" if lines == 0 else self.hashes[lines - 1 : lines] == [line_hash]


# --- reading -------------------------------------------------------------------------------------------


def read_journal(folder: Path) -> Journal | None:
    """Return the journal after verifying chain and signature; None if the folder has none.

    Raise JournalError if it was changed, OSError if it cannot be read.
    """
    with open_journal(folder) as file:
        if file is None:
            return None
        head = read_head(folder)
        data = file.read(head.size)
    if len(data) < head.size:
        raise JournalError(f"{JOURNAL_FILE} is shorter than stated in its head")
    lines = list(parse_lines(data, ""))
    if len(lines) != head.lines or (lines[-1].hash if lines else "") != head.hash:
        raise JournalError(f"{JOURNAL_FILE} does not match its head")
    return Journal(head, [line.ending for line in lines], [line.hash for line in lines])


@contextmanager
def open_journal(folder: Path) -> Iterator[BinaryIO | None]:
    """Open the journal for reading and wait for writers (file lock). Yield None if there is none."""
    path = folder / JOURNAL_FILE
    if not path.exists():
        if (folder / HEAD_FILE).exists():
            raise JournalError(f"{JOURNAL_FILE} is missing")
        yield None
        return
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield file


def read_head(folder: Path) -> JournalHead:
    """Return the head after checking that a trusted key signed it."""
    try:
        data = parse_canonical_json((folder / HEAD_FILE).read_bytes())
        head = read_record(JournalHead, data["head"], "the head")
        signature = read_record(StatementSignature, data["signature"], "the signature")
        read_json_timestamp(head.through, "the time of the journal")
    except FileNotFoundError:
        raise JournalError(f"{HEAD_FILE} is missing") from None
    except (ValueError, TypeError, LookupError) as error:
        raise JournalError(f"{HEAD_FILE} cannot be read: {error}") from error
    if not is_signature_valid(HEAD_DOMAIN, vars(head), signature):
        raise JournalError(f"the signature of {HEAD_FILE} is not valid")
    if reason := find_signature_fault(signature, get_trusted_keys()):
        raise JournalError(f"{HEAD_FILE} is signed with {signature.key}: {reason}")
    return head


def find_signature_fault(signature: StatementSignature, trusted: TrustedKeys) -> str:
    """Return why the key of a valid signature is not trusted, or an empty text."""
    return find_trust_fault(trusted, signature.key, signature.load_key())


@dataclass(frozen=True)
class JournalLine:
    """One line: an ending, when it was recorded, and the hashes of the previous line and of this one."""

    ending: Ending
    recorded_at: str
    previous: str
    hash: str

    @property
    def identity(self) -> tuple[Any, ...]:
        return get_identity(self.ending)


def get_identity(ending: Ending) -> tuple[Any, ...]:
    """Return what tells an ending from all others, so that none is written twice."""
    return ending["kind"], ending["workspace"], ending["id"], ending["at"]


def parse_lines(data: bytes, previous: str | None) -> Iterator[JournalLine]:
    """Parse lines and verify their chain. `previous` is the hash before the first line; None if unknown."""
    for number, text in enumerate(data.splitlines(), 1):
        try:
            body = parse_canonical_json(text)
            line = JournalLine(
                body["ending"], body["recorded_at"], body["previous"], canonical_digest(LINE_DOMAIN, body)
            )
            is_chained = previous is None or line.previous == previous
        except (ValueError, TypeError, LookupError) as error:
            raise JournalError(f"line {number} of {JOURNAL_FILE} cannot be read: {error}") from error
        if not is_chained:
            raise JournalError(f"line {number} of {JOURNAL_FILE} does not follow the line before it")
        previous = line.hash
        yield line


# --- writing -------------------------------------------------------------------------------------------


def append_endings(
    folder: Path, list_endings: ListEndings, *, key: PrivateKey, now: datetime
) -> tuple[int, JournalHead]:
    """Append the endings that the journal lacks, sign the head, and return their number and the head.

    The head and the last lines are verified first: a journal that was changed is not signed again.
    """
    with lock_journal(folder) as file:
        if not (folder / HEAD_FILE).exists():
            start_journal(folder, file, key)
        head = read_head(folder)
        since = head.through_at - OVERLAP
        known = {line.identity for line in read_last_lines(file, head, since)}
        found = list_endings(since)
        endings = [ending for ending in found.endings if get_identity(ending) not in known]
        through = format_timestamp(now) if found.is_complete else head.through
        head = append_lines(file, head, endings, now=now, through=through)
        write_head(folder, head, key)
    return len(endings), head


@contextmanager
def lock_journal(folder: Path) -> Iterator[BinaryIO]:
    """Open the journal for writing, alone (file lock). It is created if there is none."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(folder / JOURNAL_FILE, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def start_journal(folder: Path, file: BinaryIO, key: PrivateKey) -> None:
    """Write the head of an empty journal. The first run then appends all endings of the database."""
    if file.seek(0, os.SEEK_END):
        raise JournalError(f"{HEAD_FILE} is missing")
    write_head(folder, JournalHead(0, 0, "", format_timestamp(BEGINNING)), key)


def read_last_lines(file: BinaryIO, head: JournalHead, since: datetime) -> list[JournalLine]:
    """Return the lines that were recorded since a time, and perhaps some before, after verifying them.

    An ending is recorded after it happened, so these lines include all endings since then.
    """
    if file.seek(0, os.SEEK_END) < head.size:
        raise JournalError(f"{JOURNAL_FILE} is shorter than stated in its head")
    length = TAIL_BYTES
    while True:
        start = max(0, head.size - length)
        file.seek(start)
        data = file.read(head.size - start)
        if start:
            data = data[data.find(b"\n") + 1 :]
        lines = list(parse_lines(data, None if start else ""))
        if start == 0 or (lines and lines[0].recorded_at < format_timestamp(since)):
            break
        length *= 4
    if (lines[-1].hash if lines else "") != head.hash:
        raise JournalError(f"{JOURNAL_FILE} does not match its head")
    return lines


def append_lines(
    file: BinaryIO, head: JournalHead, endings: Iterable[Ending], *, now: datetime, through: str
) -> JournalHead:
    """Write the endings after the last valid line, durably (fsync), and return the new head."""
    file.seek(head.size)
    file.truncate()
    count, previous = head.lines, head.hash
    for ending in endings:
        body = {"ending": ending, "recorded_at": format_timestamp(now), "previous": previous}
        file.write(canonical_json(body) + b"\n")
        count, previous = count + 1, canonical_digest(LINE_DOMAIN, body)
    file.flush()
    os.fsync(file.fileno())
    return JournalHead(count, file.tell(), previous, through)


def write_head(folder: Path, head: JournalHead, key: PrivateKey) -> None:
    """Replace the head atomically and durably (rename, fsync)."""
    signature = sign_body(HEAD_DOMAIN, vars(head), key)
    draft = folder / f".{HEAD_FILE}.{os.getpid()}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(canonical_json({"head": vars(head), "signature": vars(signature)}) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / HEAD_FILE)
    sync_folder(folder)
