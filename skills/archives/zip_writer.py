"""Files to a zip: the same files give the same bytes, at any time and on any machine."""

import stat
from collections.abc import Iterable
from io import BytesIO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from skills.archives.bundle import read_files

# The first that the format knows.
DAWN = (1980, 1, 1, 0, 0, 0)
UNIX = 3


def write_zip(files: Iterable[tuple[str, bytes]]) -> bytes:
    """An archive that `read_zip` takes whole; files that it would refuse are a caller's mistake."""
    bundle = read_files(files)
    if bundle.refusals:
        path, _, reason = bundle.refusals[0]
        raise ValueError(f"{path}: {reason}")
    target = BytesIO()
    # Not compressed: different builds of zlib give different bytes.
    with ZipFile(target, "w", ZIP_STORED) as archive:
        for path, content in bundle.files:
            archive.writestr(info(path), content)
    return target.getvalue()


def info(path: str) -> ZipInfo:
    entry = ZipInfo(path, DAWN)
    entry.create_system = UNIX
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    return entry
