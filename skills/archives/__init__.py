"""Validate pushed files, from a zip archive or a list, and match them against the discovery rules.

Every file is accepted or refused with a reason.
"""

from skills.archives.bundle import FileBundle, bundle_files
from skills.archives.discover import PushedContent, build_stamp, discover_pushed_files
from skills.archives.zip_reader import read_zip
from skills.archives.zip_writer import write_zip

__all__ = [
    "FileBundle",
    "PushedContent",
    "build_stamp",
    "bundle_files",
    "discover_pushed_files",
    "read_zip",
    "write_zip",
]
