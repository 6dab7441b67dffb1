"""Strict zip reader: the central directory must agree with the local headers and the layout of the archive.

`zipfile` of the standard library is too lenient: it cuts names at a NUL, ignores data before and after the
archive, and lets entries overlap. It is also too strict: one bad name makes the whole archive unreadable.
This reader refuses ambiguous archives, and refuses an entry with a bad name without the other entries.
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
# The zip64 end record, and the locator that points to it.
ZIP64_END_RECORD = struct.Struct("<4sQ2H2L4Q")
ZIP64_END_RECORD_SIGNATURE = b"PK\x06\x06"
ZIP64_LOCATOR = struct.Struct("<4sLQL")
ZIP64_LOCATOR_SIGNATURE = b"PK\x06\x07"
ZIP64_MARKER = 0xFFFFFFFF
# The largest data descriptor: signature, CRC-32 and two 64-bit sizes.
MAX_DESCRIPTOR_BYTES = 24
DEFAULT_CAPS = DiscoveryCaps()


class CentralDirectory(NamedTuple):
    """The position of the central directory and its declared number of entries."""

    start: int
    end: int
    entry_count: int


def read_zip(data: bytes, *, caps: DiscoveryCaps = DEFAULT_CAPS) -> FileBundle:
    """Read the files of an archive.

    If the archive as a whole is damaged, the bundle has no files and one refusal with the path ".".
    """
    try:
        return build_bundle(read_zip_entries(data, caps), caps)
    except FileRefused as error:
        return FileBundle.from_error(error)
    except struct.error:
        return FileBundle.from_error(FileRefused("damaged", "The archive's central directory is truncated."))


def read_zip_entries(data: bytes, caps: DiscoveryCaps) -> Sequence[ZipEntry]:
    """Return all entries after checking that they do not overlap and leave no gaps."""
    directory = read_central_directory(data)
    if directory.entry_count > caps.entries:
        raise build_entry_count_error(caps)
    entries = [build_zip_entry(data, record) for record in read_zip_records(data, directory)]
    check_zip_layout(entries, directory)
    files = [entry for entry in entries if not entry.is_folder]
    if files and all(entry.is_encrypted for entry in files):
        raise FileRefused("encrypted", "The archive is password-protected. Send it without a password.")
    return entries


# --- end record ----------------------------------------------------------------------------------------


def read_central_directory(data: bytes) -> CentralDirectory:
    offset = end = find_end_record(data)
    numbers = END_RECORD.unpack_from(data, offset)[1:-1]
    if data[max(offset - ZIP64_LOCATOR.size, 0) : offset].startswith(ZIP64_LOCATOR_SIGNATURE):
        end = offset - ZIP64_LOCATOR.size - ZIP64_END_RECORD.size
        numbers = read_zip64_end_record(data, end, numbers)
    disk, first_disk, count_here, count, size, start = numbers
    if disk or first_disk or count_here != count:
        raise FileRefused("parts", "This is one part of a split archive. Send the whole archive.")
    if start + size < end:
        raise FileRefused("surplus", f"There are {end - start - size:,} extra bytes before the archive.")
    if start + size > end:
        raise FileRefused("damaged", "The archive's central directory is not where it should be.")
    return CentralDirectory(start, end, count)


def find_end_record(data: bytes) -> int:
    """Return the offset of the end record. Raise FileRefused unless there is exactly one.

    The archive comment can contain a second end record. Readers that choose different end records would
    list different files.
    """
    search_start = max(len(data) - END_RECORD.size - MAX_COMMENT_BYTES, 0)
    candidates = [match.start() for match in END_RECORD_SIGNATURE.finditer(data, search_start)]
    ends = [offset for offset in candidates if is_end_record(data, offset)]
    if not candidates:
        raise FileRefused("not-zip", "This is not a zip archive, or its end is missing.")
    if not ends:
        raise FileRefused("surplus", "The archive is truncated, or has extra data at its end.")
    if len(ends) > 1:
        raise FileRefused(
            "ambiguous", "The archive has more than one end record, so its list of files is ambiguous."
        )
    return ends[0]


def is_end_record(data: bytes, offset: int) -> bool:
    return offset + END_RECORD.size <= len(data) and offset + END_RECORD.size + END_RECORD.unpack_from(
        data, offset
    )[-1] == len(data)


def read_zip64_end_record(data: bytes, offset: int, values32: tuple[int, ...]) -> tuple[int, ...]:
    """Return the values of the zip64 end record.

    `values32` are the 16-bit and 32-bit values of the ordinary end record. Each must equal the zip64 value
    or be the marker (all bits set).
    """
    _, disk, located_offset, disks = ZIP64_LOCATOR.unpack_from(data, offset + ZIP64_END_RECORD.size)
    signature, size, _, _, *values64 = ZIP64_END_RECORD.unpack_from(data, max(offset, 0))
    is_valid = (offset, signature, size, disk) == (
        located_offset,
        ZIP64_END_RECORD_SIGNATURE,
        ZIP64_END_RECORD.size - 12,
        0,
    ) and disks < 2
    markers = (0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, ZIP64_MARKER, ZIP64_MARKER)
    if not is_valid or any(
        value32 not in {value64, marker}
        for value32, value64, marker in zip(values32, values64, markers, strict=True)
    ):
        raise FileRefused(
            "damaged", ("The archive contains contradictory information about its central directory.")
        )
    return tuple(values64)


# --- central directory ---------------------------------------------------------------------------------


def read_zip_records(data: bytes, directory: CentralDirectory) -> Iterator[ZipRecord]:
    offset = directory.start
    for _ in range(directory.entry_count):
        (
            signature,
            _,
            _,
            flags,
            method,
            _,
            _,
            crc,
            compressed_size,
            size,
            *lengths,
            _,
            _,
            attributes,
            header_offset,
        ) = CENTRAL_HEADER.unpack_from(data, offset)
        if signature != CENTRAL_HEADER_SIGNATURE:
            raise FileRefused("damaged", "The archive's central directory has fewer entries than stated.")
        name, extra = slice_name_and_extra(data, offset + CENTRAL_HEADER.size, lengths)
        offset += CENTRAL_HEADER.size + sum(lengths)
        if ZIP64_MARKER in {size, compressed_size, header_offset}:
            size, compressed_size, header_offset = expand_zip64_values(
                (size, compressed_size, header_offset), extra
            )
        yield ZipRecord(name, flags, method, crc, compressed_size, size, attributes, header_offset)
    if offset != directory.end:
        raise FileRefused("damaged", "The archive's central directory does not have the stated size.")


def slice_name_and_extra(data: bytes, offset: int, lengths: list[int]) -> tuple[bytes, bytes]:
    """Return the name and the extra fields of a central directory record; its comment is ignored."""
    return data[offset : offset + lengths[0]], data[offset + lengths[0] : offset + lengths[0] + lengths[1]]


def expand_zip64_values(values32: tuple[int, ...], extra: bytes) -> list[int]:
    """Replace each zip64 marker by the next 64-bit value of the zip64 extra field.

    `values32` must be in the order of that field: size, compressed size, offset.
    """
    field = find_zip64_field(extra)
    values64 = iter(struct.unpack_from(f"<{len(field) // 8}Q", field))
    return [next(values64, value) if value == ZIP64_MARKER else value for value in values32]


def find_zip64_field(extra: bytes) -> bytes:
    offset = 0
    while offset + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, offset)
        if kind == 1:
            return extra[offset + 4 : offset + 4 + length]
        offset += 4 + length
    return b""


# --- layout --------------------------------------------------------------------------------------------


def build_zip_entry(data: bytes, record: ZipRecord) -> ZipEntry:
    """Build the entry of a record. Raise FileRefused unless its offset points to a local file header."""
    if record.offset + LOCAL_HEADER.size > len(data) or not data.startswith(
        LOCAL_HEADER_SIGNATURE, record.offset
    ):
        raise FileRefused(
            "damaged", ("The archive's central directory points to a position where no file begins.")
        )
    *_, name_length, extra_length = LOCAL_HEADER.unpack_from(data, record.offset)
    return ZipEntry(record, data, record.offset + LOCAL_HEADER.size + name_length + extra_length)


def check_zip_layout(entries: Sequence[ZipEntry], directory: CentralDirectory) -> None:
    """Raise FileRefused if entries overlap or if bytes of the archive belong to no entry.

    With overlapping entries, a small archive could unpack to many large files.
    """
    previous_end, allowed_gap = 0, 0
    spans = [(entry.record.offset, entry.data_end, entry.has_descriptor) for entry in entries]
    for start, end, has_descriptor in [*sorted(spans), (directory.start, directory.end, False)]:
        if start < previous_end:
            raise FileRefused("overlap", "Files in the archive overlap, as in a zip bomb.")
        if start > previous_end + allowed_gap:
            raise FileRefused("surplus", f"{start - previous_end:,} bytes of the archive belong to no file.")
        previous_end, allowed_gap = end, MAX_DESCRIPTOR_BYTES if has_descriptor else 0
