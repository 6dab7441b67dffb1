"""Pushed files, in an archive or a list: each is taken or refused with a reason, and then looked through."""

from skills.archives.bundle import Bundle, read_files
from skills.archives.discover import Pushed, discover_pushed, stamp_of
from skills.archives.zip_reader import read_zip
from skills.archives.zip_writer import write_zip

__all__ = ["Bundle", "Pushed", "discover_pushed", "read_files", "read_zip", "stamp_of", "write_zip"]
