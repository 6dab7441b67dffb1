"""Write reproducible zip archives: the same files give the same bytes on every machine."""

import stat
from collections.abc import Iterable
from io import BytesIO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from skills.archives.bundle import bundle_files

# The earliest date that the zip format can store. A fixed date keeps the archive reproducible.
EARLIEST_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
UNIX_SYSTEM = 3


def write_zip(files: Iterable[tuple[str, bytes]]) -> bytes:
    """Write an archive that `read_zip` accepts. Raise ValueError for a file that `read_zip` would refuse."""
    bundle = bundle_files(files)
    if bundle.refusals:
        path, _, reason = bundle.refusals[0]
        raise ValueError(f"{path}: {reason}")
    target = BytesIO()
    # Not compressed: the output of zlib differs between builds.
    with ZipFile(target, "w", ZIP_STORED) as archive:
        for path, content in bundle.files:
            archive.writestr(build_zip_info(path), content)
    return target.getvalue()


def build_zip_info(path: str) -> ZipInfo:
    entry = ZipInfo(path, EARLIEST_ZIP_DATE)
    entry.create_system = UNIX_SYSTEM
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    return entry
