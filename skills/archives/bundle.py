"""One upload's files: which are taken, and which are refused before or while they are opened."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

from skills.archives.paths import LONGEST_PATH, check_path, clashes
from skills.discovery.filesystem import Refused
from skills.discovery.harnesses import Caps
from skills.discovery.results import Refusal, shown
from skills.discovery.search import WHOLE


@dataclass(frozen=True)
class Bundle:
    """The files of one push by path; each that was sent is here or among the refusals, "." is the whole."""

    files: tuple[tuple[str, bytes], ...]
    refusals: tuple[Refusal, ...]

    @classmethod
    def unread(cls, why: Refused) -> Self:
        """All or nothing: where the whole is at fault no part of it is believed."""
        return cls((), (Refusal(WHOLE, why.rule, why.reason),))


class Offer(Protocol):
    """A file or folder that was sent, not yet opened."""

    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def is_folder(self) -> bool: ...
    def check(self) -> None:
        """Refuse what can be told from outside."""

    def content(self) -> bytes:
        """Exactly as many bytes as its size says, or Refused."""


def gather(offers: Iterable[Offer], caps: Caps) -> Bundle:
    """Nothing is opened before all that can be told from outside is known to be within the caps."""
    refusals = Refusals(caps)
    placed = list(placed_ones(offers, refusals))
    sound = [offer for offer in sound_ones(placed, refusals, caps) if not offer.is_folder]
    if sum([offer.size for offer in sound]) > caps.total_bytes:
        raise too_large(caps)
    files = []
    for offer in sorted(sound, key=lambda offer: offer.path):
        with refusals.noted(offer.path):
            files.append((offer.path, offer.content()))
    return Bundle(tuple(files), tuple(sorted(refusals.by_path.values())))


def placed_ones(offers: Iterable[Offer], refusals: "Refusals") -> Iterator[Offer]:
    for offer in offers:
        with refusals.noted(offer.path):
            check_path(offer.path)
            yield offer


def sound_ones(offers: Sequence[Offer], refusals: "Refusals", caps: Caps) -> Iterator[Offer]:
    clashing = clashes((offer.path, offer.is_folder) for offer in offers)
    for offer in offers:
        with refusals.noted(offer.path):
            if not offer.is_folder and offer.path in clashing:
                raise Refused(*clashing[offer.path])
            offer.check()
            check_size(offer.size, caps)
            yield offer


class Refusals:
    """One for each path, and no more than a person could ever read."""

    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self.by_path: dict[str, Refusal] = {}

    @contextmanager
    def noted(self, path: str) -> Iterator[None]:
        try:
            yield
        except Refused as why:
            self.by_path.setdefault(path, Refusal(label(path), why.rule, why.reason))
            if len(self.by_path) > self.caps.files:
                most = f"More than {self.caps.files:,} of the files cannot be taken"
                raise Refused("files", f"{most}; the last one: {why.reason}") from why


def label(path: str) -> str:
    """Safe to print and to store, and never mistaken for the whole."""
    if path in {"", WHOLE}:
        return "(no name)"
    text = shown(path)
    return text if len(text) <= LONGEST_PATH else f"{text[: LONGEST_PATH - 1]}…"


def check_size(size: int, caps: Caps) -> None:
    if size > caps.file_bytes:
        raise Refused("size", f"It has {size:,} bytes; at most {caps.file_bytes:,} are read.")


def too_large(caps: Caps) -> Refused:
    most = f"All files together have more than {caps.total_bytes:,} bytes"
    return Refused("total", f"{most}; leave out what no agent reads.")


def too_many(caps: Caps) -> Refused:
    return Refused("entries", f"There are more than {caps.entries:,} names; leave out what no agent reads.")


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
