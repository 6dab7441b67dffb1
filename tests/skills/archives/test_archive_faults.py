"""Mutation tests for the checks of pushed files: each check is disabled, and its case must then fail."""

import zlib
from types import SimpleNamespace

import pytest

from skills.archives import bundle, bundle_files, paths, read_zip, zip_entry, zip_reader
from skills.archives.zip_entry import ZipEntry
from skills.discovery.filesystem import FileRefused
from tests.skills.archives.archive_corpus import ARCHIVES
from tests.skills.archives.test_archives import findings
from tests.skills.archives.zip_builder import quoted

pytestmark = [pytest.mark.planted, pytest.mark.promise("R8")]
BY_NAME = {case.name: case for case in ARCHIVES}


def without_check(module, name: str):
    """Disable the check."""
    return lambda patch: patch.setattr(module, name, lambda *_: None)


def trusted_size(patch) -> None:
    """Unpack everything and cut it to the declared size."""
    patch.setattr(
        zip_entry,
        "inflate_data",
        lambda compressed, size: zlib.decompressobj(-15).decompress(compressed)[:size],
    )


def any_checksum(patch) -> None:
    patch.setattr(zip_entry, "zlib", SimpleNamespace(**{**vars(zlib), "crc32": lambda _: Anything()}))


class Anything:
    """Never unequal to another value."""

    def __ne__(self, other):
        return False

    __hash__ = None  # type: ignore[assignment]


def last_end(patch) -> None:
    """Accept the last signature of an end record without checks."""
    patch.setattr(zip_reader, "find_end_record", lambda data: data.rfind(b"PK\5\6"))


def believed_64(patch) -> None:
    def read_values64(data, offset, values32):
        return zip_reader.ZIP64_END_RECORD.unpack_from(data, max(offset, 0))[4:]

    patch.setattr(zip_reader, "read_zip64_end_record", read_values64)


def no_clashes(patch) -> None:
    patch.setattr(bundle, "find_path_conflicts", lambda _: {})


def by_spelling(patch) -> None:
    patch.setattr(paths, "casefold_path", str)


def by_case_only(patch) -> None:
    patch.setattr(paths, "casefold_path", str.casefold)


def no_total(patch) -> None:
    patch.setattr(bundle, "sum", lambda _: 0, raising=False)


def no_encryption(patch) -> None:
    patch.setattr(ZipEntry, "is_encrypted", False)


def raw_names(patch) -> None:
    patch.setattr(bundle, "escape_path", str)


def cut_at_nul(patch) -> None:
    """Cut names at a NUL like the standard library."""
    patch.setattr(ZipEntry, "path", property(lambda self: self.record.name.decode().partition("\0")[0]))


def neighbours_fall(patch) -> None:
    """Refuse all files because of one bad file."""

    def collect(self, path):
        raise FileRefused("files", "One of the files cannot be taken.")

    patch.setattr(bundle.RefusalCollector, "collect", collect)


FAULTS = [
    (trusted_size, "larger than both headers say"),
    (trusted_size, "more after the packed bytes"),
    (any_checksum, "wrong checksum"),
    (any_checksum, "stored bytes that were changed"),
    (without_check(zip_reader, "check_zip_layout"), "files that quote each other"),
    (without_check(zip_reader, "check_zip_layout"), "something between"),
    (without_check(zip_reader, "check_zip_layout"), "something before, and the numbers mended"),
    (without_check(zip_reader, "check_zip_layout"), "packed bytes past the end"),
    (last_end, "something after"),
    (last_end, "an archive in the comment"),
    (believed_64, "two ends that disagree"),
    (believed_64, "an end in 64 bits elsewhere"),
    (without_check(ZipEntry, "check_file_type"), "special file: link"),
    (without_check(ZipEntry, "check_file_type"), "special file: device"),
    (without_check(ZipEntry, "check_file_type"), "folder with bytes"),
    (without_check(ZipEntry, "check_file_type"), "folder by the DOS mark"),
    (
        lambda patch: patch.setattr(zip_entry, "has_matching_header", lambda *_: True),
        "headers with two names",
    ),
    (
        lambda patch: patch.setattr(zip_entry, "has_matching_header", lambda *_: True),
        "headers with two sizes",
    ),
    (no_encryption, "encrypted"),
    (no_encryption, "all encrypted"),
    (without_check(bundle, "check_path"), "upwards"),
    (without_check(bundle, "check_path"), "absolute"),
    (without_check(bundle, "check_path"), "backslash"),
    (without_check(bundle, "check_path"), "drive letter"),
    (without_check(bundle, "check_path"), "line break"),
    (without_check(bundle, "check_path"), "folder out of the push"),
    (cut_at_nul, "NUL"),
    (raw_names, "escape sequence"),
    (no_clashes, "twice"),
    (no_clashes, "a file where a folder is"),
    (by_spelling, "twice by case"),
    (by_case_only, "twice by composition"),
    (without_check(bundle, "check_file_size"), "one byte too large"),
    (without_check(bundle, "check_file_size"), "fifty megabytes in fifty kilobytes"),
    (no_total, "too much altogether"),
    (no_total, "a bomb of many files"),
    (neighbours_fall, "wrong checksum"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "name"), [pytest.param(*row, id=f"{at}: {row[1]}") for at, row in enumerate(FAULTS)]
)
def test_a_broken_guard_is_found(plant, name, monkeypatch):
    assert findings(BY_NAME[name]) == []
    plant(monkeypatch)
    assert findings(BY_NAME[name])


def test_without_its_guard_a_bomb_would_unfold(monkeypatch):
    """Prove that the quoting archive is a real zip bomb: each file contains all that follow."""
    data = quoted(50, bytes(100_000))
    assert read_zip(data).files == ()
    monkeypatch.setattr(zip_reader, "check_zip_layout", lambda *_: None)
    files = read_zip(data).files
    assert len(files) == 50
    assert sum(len(content) for _, content in files) > 1_000 * len(data)


def test_without_its_guard_a_list_would_be_judged_otherwise(monkeypatch):
    monkeypatch.setattr(bundle, "check_path", lambda _: None)
    assert bundle_files([("../x", b"")]).files
