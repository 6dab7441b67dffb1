"""A zip's table of contents, believed only where it agrees with the bytes that it speaks of.

The standard library reads leniently: it cuts names at a NUL, looks past what stands before or after the
archive, lets entries share bytes, and gives up all of them for one bad name. Here it is plain, or refused.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from skills.archives.bundle import Bundle, gather, too_many
from skills.archives.zip_entry import LOCAL, LOCAL_SIGN, Entry, Record
from skills.discovery.filesystem import Refused
from skills.discovery.harnesses import Caps

CENTRAL = struct.Struct("<4s6H3L5H2L")
CENTRAL_SIGN = b"PK\x01\x02"
END = struct.Struct("<4s4H2LH")
END_SIGN = re.compile(rb"PK\x05\x06")
LONGEST_COMMENT = 0xFFFF
# The same for what does not fit into 32 bits, and where it stands.
END_64 = struct.Struct("<4sQ2H2L4Q")
END_64_SIGN = b"PK\x06\x06"
LOCATOR = struct.Struct("<4sLQL")
LOCATOR_SIGN = b"PK\x06\x07"
WIDE = 0xFFFFFFFF
# Sizes that were not known beforehand follow a file's bytes, at most so many of them.
LONGEST_DESCRIPTOR = 24
CAPS = Caps()


class Contents(NamedTuple):
    """Where the table of contents lies, and how many entries it claims to have."""

    start: int
    end: int
    claimed: int


def read_zip(data: bytes, *, caps: Caps = CAPS) -> Bundle:
    """The files of an archive; one that is unsound as a whole gives none of them, and the reason for "."."""
    try:
        return gather(entries_of(data, caps), caps)
    except Refused as why:
        return Bundle.unread(why)
    except struct.error:
        return Bundle.unread(Refused("damaged", "The archive's table of contents ends too early."))


def entries_of(data: bytes, caps: Caps) -> Sequence[Entry]:
    """All entries, once it is sure that they lie side by side and fill the archive."""
    contents = contents_of(data)
    if contents.claimed > caps.entries:
        raise too_many(caps)
    entries = [entry_of(data, record) for record in records_of(data, contents)]
    check_layout(entries, contents)
    files = [entry for entry in entries if not entry.is_folder]
    if files and all(entry.is_encrypted for entry in files):
        raise Refused("encrypted", "The archive is locked with a password; send it without one.")
    return entries


# --- the end, which is read first ---------------------------------------------------------------------


def contents_of(data: bytes) -> Contents:
    at = end = end_of(data)
    numbers = END.unpack_from(data, at)[1:-1]
    if data[max(at - LOCATOR.size, 0) : at].startswith(LOCATOR_SIGN):
        end = at - LOCATOR.size - END_64.size
        numbers = widened(data, end, numbers)
    disk, first_disk, here, count, size, start = numbers
    if disk or first_disk or here != count:
        raise Refused("parts", "It is one part of an archive that was split into several.")
    if start + size < end:
        raise Refused("surplus", f"There are {end - start - size:,} bytes before the archive begins.")
    if start + size > end:
        raise Refused("damaged", "The archive's table of contents is not where it should be.")
    return Contents(start, end, count)


def end_of(data: bytes) -> int:
    """Where the one end record is; a comment could hold another, and readers would not agree on the files."""
    tail = max(len(data) - END.size - LONGEST_COMMENT, 0)
    signs = [sign.start() for sign in END_SIGN.finditer(data, tail)]
    ends = [at for at in signs if is_end(data, at)]
    if not signs:
        raise Refused("not-zip", "It is not a zip archive, or its end is missing.")
    if not ends:
        raise Refused("surplus", "The archive does not end where it says: it was cut off, or more was added.")
    if len(ends) > 1:
        raise Refused("ambiguous", "The archive has more than one end, and so more than one list of files.")
    return ends[0]


def is_end(data: bytes, at: int) -> bool:
    return at + END.size <= len(data) and at + END.size + END.unpack_from(data, at)[-1] == len(data)


def widened(data: bytes, at: int, narrow: tuple[int, ...]) -> tuple[int, ...]:
    """The end's numbers in 64 bits; those in 16 and 32 must say the same, or that they cannot say it."""
    _, disk, place, disks = LOCATOR.unpack_from(data, at + END_64.size)
    sign, size, _, _, *wide = END_64.unpack_from(data, max(at, 0))
    is_there = (at, sign, size, disk) == (place, END_64_SIGN, END_64.size - 12, 0) and disks < 2
    most = (0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, WIDE, WIDE)
    if not is_there or any(few not in {many, top} for few, many, top in zip(narrow, wide, most, strict=True)):
        raise Refused("damaged", "The archive says two different things about its table of contents.")
    return tuple(wide)


# --- the table ----------------------------------------------------------------------------------------


def records_of(data: bytes, contents: Contents) -> Iterator[Record]:
    at = contents.start
    for _ in range(contents.claimed):
        (sign, _, _, flags, method, _, _, crc, packed, size, *lengths, _, _, attributes, place) = (
            CENTRAL.unpack_from(data, at)
        )
        if sign != CENTRAL_SIGN:
            raise Refused("damaged", "The archive's table of contents has fewer entries than it says.")
        name, extra = sliced(data, at + CENTRAL.size, lengths)
        at += CENTRAL.size + sum(lengths)
        if WIDE in {size, packed, place}:
            size, packed, place = unfolded((size, packed, place), extra)
        yield Record(name, flags, method, crc, packed, size, attributes, place)
    if at != contents.end:
        raise Refused("damaged", "The archive's table of contents is not as long as it says.")


def sliced(data: bytes, at: int, lengths: list[int]) -> tuple[bytes, bytes]:
    """A name and the extra fields after it; the comment is nobody's business."""
    return data[at : at + lengths[0]], data[at + lengths[0] : at + lengths[0] + lengths[1]]


def unfolded(narrow: tuple[int, ...], extra: bytes) -> list[int]:
    """Numbers that do not fit into 32 bits stand in a field of their own, in this order."""
    field = field_64(extra)
    wide = iter(struct.unpack_from(f"<{len(field) // 8}Q", field))
    return [next(wide, number) if number == WIDE else number for number in narrow]


def field_64(extra: bytes) -> bytes:
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            return extra[at + 4 : at + 4 + length]
        at += 4 + length
    return b""


# --- the layout ---------------------------------------------------------------------------------------


def entry_of(data: bytes, record: Record) -> Entry:
    """The record with its own header; without one it points nowhere."""
    if record.place + LOCAL.size > len(data) or not data.startswith(LOCAL_SIGN, record.place):
        raise Refused("damaged", "The archive's table of contents names a place where no file begins.")
    *_, name, extra = LOCAL.unpack_from(data, record.place)
    return Entry(record, data, record.place + LOCAL.size + name + extra)


def check_layout(entries: Sequence[Entry], contents: Contents) -> None:
    """Side by side: where entries share bytes a small archive can hold any number of large files."""
    reached, slack = 0, 0
    places = [(entry.record.place, entry.end, entry.has_descriptor) for entry in entries]
    for start, end, has_descriptor in [*sorted(places), (contents.start, contents.end, False)]:
        if start < reached:
            raise Refused("overlap", "Parts of the archive share the same bytes, as in a zip bomb.")
        if start > reached + slack:
            raise Refused("surplus", f"{start - reached:,} bytes of the archive belong to no file.")
        reached, slack = end, LONGEST_DESCRIPTOR if has_descriptor else 0
