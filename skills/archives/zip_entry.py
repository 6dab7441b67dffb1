"""One zip entry: compare its central and local headers, then decompress and verify its content."""

import stat
import struct
import zlib
from functools import cached_property
from typing import NamedTuple

from skills.discovery.filesystem import FILE_TYPE_REFUSALS, FileRefused

LOCAL_HEADER = struct.Struct("<4s5H3L2H")
LOCAL_HEADER_SIGNATURE = b"PK\x03\x04"
METHOD_STORED, METHOD_DEFLATED = 0, 8
# Flag bits for traditional encryption, strong encryption, and encrypted headers.
ENCRYPTED_FLAGS = 0x0001 | 0x0040 | 0x2000
PATCH_FLAG = 0x0020
# Flag bit: CRC-32 and sizes are in a data descriptor after the content, and the local header may omit them.
DATA_DESCRIPTOR_FLAG = 0x0008
DOS_FOLDER_ATTRIBUTE = 0x10
ZIP64_MARKER = 0xFFFFFFFF


class ZipRecord(NamedTuple):
    """The fields of one entry in the central directory."""

    name: bytes
    flags: int
    method: int
    crc: int
    compressed_size: int
    size: int
    attributes: int
    offset: int


class ZipEntry:
    """A central directory record, its archive, and the offset of its compressed data."""

    def __init__(self, record: ZipRecord, archive: bytes, data_start: int) -> None:
        self.record, self.archive, self.data_start = record, archive, data_start

    @cached_property
    def path(self) -> str:
        """The name of the entry, decoded as UTF-8 even if the UTF-8 flag is not set.

        Without the flag, the archive does not declare which encoding its names have.
        """
        return self.record.name.removesuffix(b"/").decode("utf-8", "surrogateescape")

    @property
    def size(self) -> int:
        return self.record.size

    @property
    def is_folder(self) -> bool:
        return self.record.name.endswith(b"/")

    @property
    def data_end(self) -> int:
        return self.data_start + self.record.compressed_size

    @property
    def is_encrypted(self) -> bool:
        return bool(self.record.flags & ENCRYPTED_FLAGS)

    @property
    def has_descriptor(self) -> bool:
        return bool((self.record.flags | self.local_header.flags) & DATA_DESCRIPTOR_FLAG)

    @property
    def local_header(self) -> ZipRecord:
        """The local file header, in the form of a central directory record."""
        _, _, flags, method, _, _, crc, compressed_size, size, name_length, _ = LOCAL_HEADER.unpack_from(
            self.archive, self.record.offset
        )
        start = self.record.offset + LOCAL_HEADER.size
        name = self.archive[start : start + name_length]
        return ZipRecord(
            name, flags, method, crc, compressed_size, size, self.record.attributes, self.record.offset
        )

    def check(self) -> None:
        self.check_file_type()
        if self.is_encrypted:
            raise FileRefused("encrypted", "The file is password-protected. Send it without a password.")
        if self.record.method not in {METHOD_STORED, METHOD_DEFLATED} or self.record.flags & PATCH_FLAG:
            raise FileRefused(
                "compression", ("The compression method is not supported. Use a plain zip archive.")
            )
        if not has_matching_header(self.record, self.local_header):
            raise FileRefused("mismatch", "The archive contains contradictory information about the file.")

    def check_file_type(self) -> None:
        """Raise FileRefused unless the entry is a regular file, or a folder entry without content."""
        file_type = stat.S_IFMT(self.record.attributes >> 16)
        if file_type == stat.S_IFLNK:
            raise FileRefused("link", "This is a link. Push the file that it points to.")
        if self.is_folder and self.size:
            raise FileRefused("folder", "The name ends in / like a folder, but the entry has content.")
        is_marked = file_type == stat.S_IFDIR or self.record.attributes & DOS_FOLDER_ATTRIBUTE
        if is_marked and not self.is_folder:
            raise FileRefused(*FILE_TYPE_REFUSALS[stat.S_IFDIR])
        if file_type not in {0, stat.S_IFREG, stat.S_IFDIR}:
            raise FileRefused(*FILE_TYPE_REFUSALS.get(file_type, ("kind", "This is not a regular file.")))

    def read_content(self) -> bytes:
        """Return the decompressed content after checking its size and CRC-32."""
        compressed = memoryview(self.archive)[self.data_start : self.data_end]
        is_stored = self.record.method == METHOD_STORED
        if is_stored and len(compressed) != self.size:
            raise build_size_mismatch_error()
        content = bytes(compressed) if is_stored else inflate_data(compressed, self.size)
        if zlib.crc32(content) != self.record.crc:
            raise FileRefused("damaged", "The file is damaged: its checksum does not match.")
        return content


def inflate_data(compressed: memoryview, size: int) -> bytes:
    """Decompress at most `size` + 1 bytes, so that a zip bomb cannot exceed its declared size."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = inflater.decompress(compressed, size + 1)
    except zlib.error as error:
        raise FileRefused("damaged", "The file is damaged and cannot be unpacked.") from error
    if len(content) != size or not inflater.eof or inflater.unused_data:
        raise build_size_mismatch_error()
    return content


def build_size_mismatch_error() -> FileRefused:
    return FileRefused("mismatch", "The unpacked size does not match the archive.")


def has_matching_header(record: ZipRecord, header: ZipRecord) -> bool:
    """Return whether the local header agrees with the central directory record.

    CRC-32 and sizes are not compared if a data descriptor follows the content. A value of the local header
    may also be the zip64 marker.
    """
    if (record.name, record.method) != (header.name, header.method):
        return False
    if (record.flags ^ header.flags) & ENCRYPTED_FLAGS:
        return False
    pairs = (
        (record.crc, header.crc),
        (record.size, header.size),
        (record.compressed_size, header.compressed_size),
    )
    has_descriptor = header.flags & DATA_DESCRIPTOR_FLAG
    return bool(has_descriptor) or all(local_value in {value, ZIP64_MARKER} for value, local_value in pairs)
