"""Pushed files, in an archive or a list: each is taken or refused with a reason, and then looked through."""

from skills.bundles.archives import read_zip
from skills.bundles.gathering import Bundle
from skills.bundles.lists import read_files
from skills.bundles.pushed import Pushed, discover_pushed, stamp_of
from skills.bundles.writing import write_zip

__all__ = ["Bundle", "Pushed", "discover_pushed", "read_files", "read_zip", "stamp_of", "write_zip"]
