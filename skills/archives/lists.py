"""Files that come as a list of paths and contents, by the same rules as those in an archive."""

from collections.abc import Iterable
from typing import NamedTuple

from skills.archives.bundle import Bundle, gather, too_large, too_many
from skills.discovery.filesystem import Refused
from skills.discovery.harnesses import Caps

CAPS = Caps()


class Given(NamedTuple):
    """A file whose content is at hand, unless it is too large."""

    path: str
    size: int
    held: bytes
    is_folder: bool = False

    def check(self) -> None:
        """Nothing can be told from outside that its path and size do not say."""

    def content(self) -> bytes:
        return self.held


def read_files(pairs: Iterable[tuple[str, bytes]], *, caps: Caps = CAPS) -> Bundle:
    """The files of a list; too many or too much gives none of them, and the reason for "."."""
    try:
        return gather(bounded(pairs, caps), caps)
    except Refused as why:
        return Bundle.unread(why)


def bounded(pairs: Iterable[tuple[str, bytes]], caps: Caps) -> list[Given]:
    """Asks for no more once it is too much; what is too large by itself is not held."""
    given: list[Given] = []
    total = 0
    for path, content in pairs:
        if len(given) == caps.entries:
            raise too_many(caps)
        held = content if len(content) <= caps.file_bytes else b""
        given.append(Given(path, len(content), held))
        total += len(held)
        if total > caps.total_bytes:
            raise too_large(caps)
    return given
