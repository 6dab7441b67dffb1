"""A zip's table of contents, believed only where it agrees with the bytes that it speaks of.

The standard library reads leniently: it cuts names at a NUL, looks past what stands before or after the
archive, lets entries share bytes, and gives up all of them for one bad name. Here it is plain, or refused.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from skills.archives.bundle import FileBundle, build_bundle, build_entry_count_error
from skills.archives.zip_entry import LOCAL_HEADER, LOCAL_HEADER_SIGNATURE, ZipEntry, ZipRecord
from skills.discovery.filesystem import FileRefused
from skills.discovery.harnesses import DiscoveryCaps

CENTRAL_HEADER = struct.Struct("<4s6H3L5H2L")
CENTRAL_HEADER_SIGNATURE = b"PK\x01\x02"
END_RECORD = struct.Struct("<4s4H2LH")
END_RECORD_SIGNATURE = re.compile(rb"PK\x05\x06")
MAX_COMMENT_BYTES = 0xFFFF
# The same for what does not fit into 32 bits, and where it stands.
ZIP64_END_RECORD = struct.Struct("<4sQ2H2L4Q")
ZIP64_END_RECORD_SIGNATURE = b"PK\x06\x06"
ZIP64_LOCATOR = struct.Struct("<4sLQL")
ZIP64_LOCATOR_SIGNATURE = b"PK\x06\x07"
ZIP64_MARKER = 0xFFFFFFFF
# Sizes that were not known beforehand follow a file's bytes, at most so many of them.
MAX_DESCRIPTOR_BYTES = 24
DEFAULT_CAPS = DiscoveryCaps()


class CentralDirectory(NamedTuple):
    """Where the table of contents lies, and how many entries it claims to have."""

    start: int
    end: int
    claimed: int


def read_zip(data: bytes, *, caps: DiscoveryCaps = DEFAULT_CAPS) -> FileBundle:
    """The files of an archive; one that is unsound as a whole gives none of them, and the reason for "."."""
    try:
        return build_bundle(read_zip_entries(data, caps), caps)
    except FileRefused as why:
        return FileBundle.unread(why)
    except struct.error:
        return FileBundle.unread(FileRefused("damaged", "The archive's table of contents ends too early."))


def read_zip_entries(data: bytes, caps: DiscoveryCaps) -> Sequence[ZipEntry]:
    """All entries, once it is sure that they lie side by side and fill the archive."""
    contents = read_central_directory(data)
    if contents.claimed > caps.entries:
        raise build_entry_count_error(caps)
    entries = [build_zip_entry(data, record) for record in read_zip_records(data, contents)]
    check_zip_layout(entries, contents)
    files = [entry for entry in entries if not entry.is_folder]
    if files and all(entry.is_encrypted for entry in files):
        raise FileRefused("encrypted", "The archive is locked with a password; send it without one.")
    return entries


# --- the end, which is read first ---------------------------------------------------------------------


def read_central_directory(data: bytes) -> CentralDirectory:
    at = end = find_end_record(data)
    numbers = END_RECORD.unpack_from(data, at)[1:-1]
    if data[max(at - ZIP64_LOCATOR.size, 0) : at].startswith(ZIP64_LOCATOR_SIGNATURE):
        end = at - ZIP64_LOCATOR.size - ZIP64_END_RECORD.size
        numbers = read_zip64_end_record(data, end, numbers)
    disk, first_disk, here, count, size, start = numbers
    if disk or first_disk or here != count:
        raise FileRefused("parts", "It is one part of an archive that was split into several.")
    if start + size < end:
        raise FileRefused("surplus", f"There are {end - start - size:,} bytes before the archive begins.")
    if start + size > end:
        raise FileRefused("damaged", "The archive's table of contents is not where it should be.")
    return CentralDirectory(start, end, count)


def find_end_record(data: bytes) -> int:
    """Where the one end record is; a comment could hold another, and readers would not agree on the files."""
    tail = max(len(data) - END_RECORD.size - MAX_COMMENT_BYTES, 0)
    signs = [sign.start() for sign in END_RECORD_SIGNATURE.finditer(data, tail)]
    ends = [at for at in signs if is_end_record(data, at)]
    if not signs:
        raise FileRefused("not-zip", "It is not a zip archive, or its end is missing.")
    if not ends:
        raise FileRefused(
            "surplus", "The archive does not end where it says: it was cut off, or more was added."
        )
    if len(ends) > 1:
        raise FileRefused(
            "ambiguous", "The archive has more than one end, and so more than one list of files."
        )
    return ends[0]


def is_end_record(data: bytes, at: int) -> bool:
    return at + END_RECORD.size <= len(data) and at + END_RECORD.size + END_RECORD.unpack_from(data, at)[
        -1
    ] == len(data)


def read_zip64_end_record(data: bytes, at: int, narrow: tuple[int, ...]) -> tuple[int, ...]:
    """The end's numbers in 64 bits; those in 16 and 32 must say the same, or that they cannot say it."""
    _, disk, place, disks = ZIP64_LOCATOR.unpack_from(data, at + ZIP64_END_RECORD.size)
    sign, size, _, _, *wide = ZIP64_END_RECORD.unpack_from(data, max(at, 0))
    is_there = (at, sign, size, disk) == (
        place,
        ZIP64_END_RECORD_SIGNATURE,
        ZIP64_END_RECORD.size - 12,
        0,
    ) and disks < 2
    most = (0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, ZIP64_MARKER, ZIP64_MARKER)
    if not is_there or any(few not in {many, top} for few, many, top in zip(narrow, wide, most, strict=True)):
        raise FileRefused("damaged", "The archive says two different things about its table of contents.")
    return tuple(wide)


# --- the table ----------------------------------------------------------------------------------------


def read_zip_records(data: bytes, contents: CentralDirectory) -> Iterator[ZipRecord]:
    at = contents.start
    for _ in range(contents.claimed):
        (sign, _, _, flags, method, _, _, crc, packed, size, *lengths, _, _, attributes, place) = (
            CENTRAL_HEADER.unpack_from(data, at)
        )
        if sign != CENTRAL_HEADER_SIGNATURE:
            raise FileRefused("damaged", "The archive's table of contents has fewer entries than it says.")
        name, extra = slice_name_and_extra(data, at + CENTRAL_HEADER.size, lengths)
        at += CENTRAL_HEADER.size + sum(lengths)
        if ZIP64_MARKER in {size, packed, place}:
            size, packed, place = expand_zip64_values((size, packed, place), extra)
        yield ZipRecord(name, flags, method, crc, packed, size, attributes, place)
    if at != contents.end:
        raise FileRefused("damaged", "The archive's table of contents is not as long as it says.")


def slice_name_and_extra(data: bytes, at: int, lengths: list[int]) -> tuple[bytes, bytes]:
    """A name and the extra fields after it; the comment is nobody's business."""
    return data[at : at + lengths[0]], data[at + lengths[0] : at + lengths[0] + lengths[1]]


def expand_zip64_values(narrow: tuple[int, ...], extra: bytes) -> list[int]:
    """Numbers that do not fit into 32 bits stand in a field of their own, in this order."""
    field = find_zip64_field(extra)
    wide = iter(struct.unpack_from(f"<{len(field) // 8}Q", field))
    return [next(wide, number) if number == ZIP64_MARKER else number for number in narrow]


def find_zip64_field(extra: bytes) -> bytes:
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            return extra[at + 4 : at + 4 + length]
        at += 4 + length
    return b""


# --- the layout ---------------------------------------------------------------------------------------


def build_zip_entry(data: bytes, record: ZipRecord) -> ZipEntry:
    """The record with its own header; without one it points nowhere."""
    if record.place + LOCAL_HEADER.size > len(data) or not data.startswith(
        LOCAL_HEADER_SIGNATURE, record.place
    ):
        raise FileRefused("damaged", "The archive's table of contents names a place where no file begins.")
    *_, name, extra = LOCAL_HEADER.unpack_from(data, record.place)
    return ZipEntry(record, data, record.place + LOCAL_HEADER.size + name + extra)


def check_zip_layout(entries: Sequence[ZipEntry], contents: CentralDirectory) -> None:
    """Side by side: where entries share bytes a small archive can hold any number of large files."""
    reached, slack = 0, 0
    places = [(entry.record.place, entry.end, entry.has_descriptor) for entry in entries]
    for start, end, has_descriptor in [*sorted(places), (contents.start, contents.end, False)]:
        if start < reached:
            raise FileRefused("overlap", "Parts of the archive share the same bytes, as in a zip bomb.")
        if start > reached + slack:
            raise FileRefused("surplus", f"{start - reached:,} bytes of the archive belong to no file.")
        reached, slack = end, MAX_DESCRIPTOR_BYTES if has_descriptor else 0
