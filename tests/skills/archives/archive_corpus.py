"""A corpus of malformed archives and lists, each with the rule that refuses it."""

import gzip
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from skills.discovery.harnesses import DiscoveryCaps
from tests.skills.archives.zip_builder import Part, archive, archive_64, deflated, overlapping, quoted

GOOD = Part("AGENTS.md", b"good neighbour")
MOST = 256 * 1024
NESTED = archive(Part("inner.md"))
ZEROS = bytes(50 * 1024 * 1024)


@dataclass(frozen=True)
class Case:
    """The input, the expected refusals by path and rule, and the accepted paths besides AGENTS.md."""

    name: str
    data: Callable[[], bytes]
    refused: dict[str, str] = field(default_factory=dict)
    accepted: tuple[str, ...] = ()
    caps: DiscoveryCaps = field(default_factory=DiscoveryCaps)

    @property
    def expected(self) -> list[str]:
        return [] if "." in self.refused else sorted({"AGENTS.md", *self.accepted})


def with_good_part(
    name: str,
    part: Part,
    rule: str = "",
    *,
    accepted: tuple[str, ...] = (),
    caps: DiscoveryCaps | None = None,
) -> Case:
    """A case with one valid file and this part, which the rule refuses."""
    refused = {str(part.name): rule} if rule else {}
    return Case(name, lambda: archive(GOOD, part), refused, accepted, caps or DiscoveryCaps())


def refused_archive(
    name: str, data: Callable[[], bytes], rule: str, caps: DiscoveryCaps | None = None
) -> Case:
    return Case(name, data, {".": rule}, (), caps or DiscoveryCaps())


def accepted_archive(
    name: str, data: Callable[[], bytes], *accepted: str, caps: DiscoveryCaps | None = None
) -> Case:
    return Case(name, data, {}, accepted, caps or DiscoveryCaps())


def extra_64(*numbers: int) -> bytes:
    return struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers)


WIDE = 0xFFFFFFFF
LATER = {"size": WIDE}
BOMB = Part("bomb.md", ZEROS[: MOST + 1])
# Declares ten bytes and contains a quarter of a megabyte.
LIAR = Part("liar.md", ZEROS[:10], packed=deflated(ZEROS[:MOST]))
MODES = {
    "link": stat.S_IFLNK,
    "pipe": stat.S_IFIFO,
    "device": stat.S_IFCHR,
    "socket": stat.S_IFSOCK,
    "kind": 0o070000,
}

PATHS = [
    ("absolute", "/etc/passwd", "outside"),
    ("drive letter", "C:/AGENTS.md", "outside"),
    ("drive letter without a slash", "c:AGENTS.md", "outside"),
    ("upwards", "../AGENTS.md", "outside"),
    ("upwards in the middle", "a/../../AGENTS.md", "outside"),
    ("upwards at the end", "a/..", "outside"),
    ("backslash", "a\\AGENTS.md", "path"),
    ("upwards by backslash", "..\\AGENTS.md", "path"),
    ("network share", "\\\\host\\share", "path"),
    ("empty name inside", "a//AGENTS.md", "path"),
    ("lone dot inside", "a/./AGENTS.md", "path"),
    ("lone dot before", "./AGENTS.md", "path"),
    ("a name of 256 bytes", "a" * 256, "name"),
    ("a name of 256 bytes in fewer letters", "ä" * 128, "name"),
]
# These paths are escaped for display.
HIDDEN = [
    ("no name", "", "(no name)", "name"),
    ("a single dot", ".", "(no name)", "path"),
    ("NUL", "AGENTS.md\0.png", "AGENTS.md\\x00.png", "name"),
    ("line break", "a\nb.md", "a\\nb.md", "name"),
    ("escape sequence", "\x1b[31m.md", "\\x1b[31m.md", "name"),
    ("direction override", "a\u202egpj.md", "a\\u202egpj.md", "name"),
    ("no-width space", "AGENTS\u200b.md", "AGENTS\\u200b.md", "name"),
    ("a path of 1,001 letters", "a/" * 500 + "b", "a/" * 499 + "a…", "name"),
    ("a path of 10,001 letters", "a/" * 5_000 + "b", "a/" * 499 + "a…", "name"),
]
CLASHES: list[tuple[str, list[str], dict[str, str], list[str]]] = [
    ("twice", ["b.md", "b.md"], {"b.md": "twice"}, []),
    ("twice by case", ["b.md", "B.md"], {"b.md": "alike", "B.md": "alike"}, []),
    ("twice by the folder's case", ["b/c.md", "B/c.md"], {"b/c.md": "alike", "B/c.md": "alike"}, []),
    ("twice by sharp s", ["straße.md", "STRASSE.md"], {"straße.md": "alike", "STRASSE.md": "alike"}, []),
    ("twice by composition", ["\xe9.md", "e\u0301.md"], {"\xe9.md": "alike", "e\u0301.md": "alike"}, []),
    ("thrice", ["b", "b", "B"], {"b": "alike", "B": "alike"}, []),
    ("a file where a folder is", ["b", "b/c.md"], {"b": "folder"}, ["b/c.md"]),
    ("a file where a folder is, by case", ["B", "b/c/d.md"], {"B": "folder"}, ["b/c/d.md"]),
    ("no clash", ["b/c", "b/cd", "b.c", "b-c"], {}, ["b/c", "b/cd", "b.c", "b-c"]),
]

ENTRIES = [
    *[
        with_good_part(f"special file: {rule}", Part("x.md", mode=kind | 0o777), rule)
        for rule, kind in MODES.items()
    ],
    with_good_part(
        "link from a system that has none", Part("x", mode=0o120777, central={"system": 0}), "link"
    ),
    with_good_part("folder by mode", Part("x.md", b"", mode=0o040755), "folder"),
    with_good_part("folder by the DOS mark", Part("x.md", b"", central={"attributes": 0x10}), "folder"),
    Case("folder with bytes", lambda: archive(GOOD, Part("x/", b"hidden")), {"x": "folder"}),
    Case("folder out of the push", lambda: archive(GOOD, Part("../x/", b"")), {"../x": "outside"}),
    Case("link named like a folder", lambda: archive(GOOD, Part("x/", b"", mode=0o120777)), {"x": "link"}),
    Case("folder where a file is", lambda: archive(GOOD, Part("x"), Part("x/", b"")), {"x": "folder"}),
    Case(
        "deeper folder where a file is", lambda: archive(GOOD, Part("x"), Part("x/y/", b"")), {"x": "folder"}
    ),
    with_good_part("encrypted", Part("x.md", flags=1), "encrypted"),
    with_good_part("strongly encrypted", Part("x.md", flags=0x41), "encrypted"),
    with_good_part("encrypted by one header only", Part("x.md", local={"flags": 1}), "mismatch"),
    *[
        with_good_part(f"compression method {method}", Part("x.md", method=method), "compression")
        for method in (1, 6, 9, 12, 14, 93, 95, 99)
    ],
    with_good_part("a patch", Part("x.md", flags=0x20), "compression"),
    with_good_part("wrong checksum", Part("x.md", local={"crc": 7}, central={"crc": 7}), "damaged"),
    with_good_part("bytes that cannot be unpacked", Part("x.md", packed=b"\xff" * 9), "damaged"),
    with_good_part("stored bytes that were changed", Part("x.md", b"words", 0, packed=b"sword"), "damaged"),
    with_good_part(
        "cut off while packed", Part("x.md", ZEROS[:99], packed=deflated(ZEROS[:99])[:-2]), rule="mismatch"
    ),
    with_good_part(
        "more after the packed bytes", Part("x.md", packed=deflated(b"words") + b"more"), "mismatch"
    ),
    with_good_part("larger than both headers say", LIAR, "mismatch"),
    with_good_part(
        "smaller than both headers say", Part("x.md", ZEROS[:9], packed=deflated(b"")), "mismatch"
    ),
    with_good_part(
        "stored, larger than said", Part("x.md", b"words", 0, packed=b"words and more"), "mismatch"
    ),
    with_good_part("headers with two names", Part("x.md", local={"name": b"y.md"}), "mismatch"),
    with_good_part("headers with a way out", Part("x.md", local={"name": b"../x.md"}), "mismatch"),
    with_good_part("headers with two sizes", Part("x.md", local={"size": 4}), "mismatch"),
    with_good_part("headers with two methods", Part("x.md", local={"method": 0}), "mismatch"),
    with_good_part("headers with two checksums", Part("x.md", local={"crc": 1}), "mismatch"),
    with_good_part("one byte too large", BOMB, "size"),
    with_good_part("as large as allowed", Part("x.md", ZEROS[:MOST]), accepted=("x.md",)),
    with_good_part("fifty megabytes in fifty kilobytes", Part("x.md", ZEROS), "size"),
    with_good_part(
        "64 bits of lies",
        Part("x.md", local=LATER, central={"size": WIDE, "extra": extra_64(2**63)}),
        rule="size",
    ),
    with_good_part(
        "64 bits promised and not given", Part("x.md", local=LATER, central={"size": WIDE}), "size"
    ),
    with_good_part(
        "64 bits that tell the truth",
        Part("x.md", central={"size": WIDE, "extra": b"\x99\x99\2\0ab" + extra_64(5)}, local=LATER),
        accepted=("x.md",),
    ),
    Case(
        "a name in no known letters",
        lambda: archive(GOOD, Part(b"caf\x82.md")),
        {"caf\\x82.md": "name"},
    ),
    Case(
        "a name marked as UTF-8 that is not",
        lambda: archive(GOOD, Part(b"caf\xe9.md", flags=0x800)),
        {"caf\\xe9.md": "name"},
    ),
    with_good_part("a lower cap", Part("x.md", ZEROS[:99]), "size", caps=DiscoveryCaps(file_bytes=98)),
]

SOUND = [
    accepted_archive("stored", lambda: archive(GOOD, Part("x.md", method=0)), "x.md"),
    accepted_archive("a commit in the comment", lambda: archive(GOOD, comment=b"5" * 40)),
    accepted_archive("the longest comment", lambda: archive(GOOD, comment=b"c" * 0xFFFF)),
    accepted_archive(
        "a comment that looks like an end", lambda: archive(GOOD, comment=b"PK\5\6 and no more")
    ),
    accepted_archive("a comment that begins like an end", lambda: archive(GOOD, comment=b"PK\5\6")),
    accepted_archive(
        "comments of entries", lambda: archive(GOOD, Part("x.md", comment=b"PK\1\2" * 9)), "x.md"
    ),
    accepted_archive(
        "folders", lambda: archive(Part("b/", b"", 0, mode=0o040755), GOOD, Part("b/c.md")), "b/c.md"
    ),
    accepted_archive("a packed folder", lambda: archive(Part("b/", b"", mode=0), GOOD)),
    accepted_archive("an empty file", lambda: archive(GOOD, Part("x.md", b"")), "x.md"),
    accepted_archive("UTF-8 without the mark", lambda: archive(GOOD, Part("é/ß.md")), "é/ß.md"),
    accepted_archive("UTF-8 with the mark", lambda: archive(GOOD, Part("é/ß.md", flags=0x800)), "é/ß.md"),
    accepted_archive("an archive inside", lambda: archive(GOOD, Part("in.zip", NESTED, 0)), "in.zip"),
    accepted_archive("a packed archive inside", lambda: archive(GOOD, Part("in.zip", NESTED)), "in.zip"),
    accepted_archive(
        "sizes that follow the bytes",
        lambda: archive(
            Part("x", flags=8, local={"size": 0, "packed": 0, "crc": 0}, descriptor=b"PK\7\x08" + bytes(12)),
            GOOD,
        ),
        "x",
    ),
    accepted_archive(
        "no mode at all", lambda: archive(GOOD, Part("x.md", mode=0, central={"system": 0})), "x.md"
    ),
    accepted_archive("an end in 64 bits", lambda: archive_64(GOOD)),
    accepted_archive(
        "dates that never were", lambda: archive(GOOD).replace(struct.pack("<HH", 0, 33), b"\xff" * 4)
    ),
]

WHOLE = [
    refused_archive("nothing", lambda: b"", "not-zip"),
    refused_archive("a text", lambda: b"# Hello\n" * 99, "not-zip"),
    refused_archive("a gzip", lambda: gzip.compress(b"words"), "not-zip"),
    refused_archive("an archive without its end", lambda: archive(GOOD)[:-23], "not-zip"),
    refused_archive("an archive without its last byte", lambda: archive(GOOD)[:-1], "surplus"),
    refused_archive("an archive without its first byte", lambda: archive(GOOD)[1:], "damaged"),
    refused_archive("only an end", lambda: b"PK\5\6", "surplus"),
    refused_archive("something before", lambda: b"GIF89a" + archive(GOOD), "surplus"),
    refused_archive("something before, and the numbers mended", lambda: shifted(b"#!/bin/sh\n"), "surplus"),
    refused_archive("something after", lambda: archive(GOOD) + b"more", "surplus"),
    refused_archive("something between", lambda: archive(GOOD, gap=b"hidden words" * 9), "surplus"),
    refused_archive("two archives in a row", lambda: archive(GOOD) + archive(GOOD), "surplus"),
    refused_archive(
        "an archive in the comment", lambda: archive(GOOD, comment=archive(Part("evil.md"))), "ambiguous"
    ),
    refused_archive("one of several parts", lambda: archive(GOOD, end={"disk": 1}), "parts"),
    refused_archive("some of its entries elsewhere", lambda: archive(GOOD, end={"here": 0}), "parts"),
    refused_archive("all encrypted", lambda: archive(Part("b/", b""), Part("x", flags=1)), "encrypted"),
    refused_archive("fewer entries than said", lambda: archive(GOOD, end={"here": 2, "count": 2}), "damaged"),
    refused_archive(
        "more entries than said", lambda: archive(GOOD, GOOD, end={"here": 1, "count": 1}), "damaged"
    ),
    refused_archive("no entries said", lambda: archive(GOOD, end={"here": 0, "count": 0}), "damaged"),
    refused_archive("a table that starts early", lambda: archive(GOOD, end={"start": 1}), "surplus"),
    refused_archive("a table that is too long", lambda: archive(GOOD, end={"size": 999}), "damaged"),
    refused_archive(
        "a record with a wrong sign", lambda: archive(Part("x", central={"sign": b"PK\1\3"})), "damaged"
    ),
    refused_archive(
        "a header with a wrong sign", lambda: archive(Part("x", local={"sign": b"PK\3\5"})), "damaged"
    ),
    refused_archive("a place outside", lambda: archive(GOOD, Part("x", central={"place": 10**6})), "damaged"),
    refused_archive(
        "a place outside, in 64 bits",
        lambda: archive(GOOD, Part("x", central={"place": WIDE, "extra": extra_64(2**64 - 1)})),
        "damaged",
    ),
    refused_archive(
        "packed bytes past the end", lambda: archive(GOOD, Part("x", central={"packed": 10**6})), "overlap"
    ),
    refused_archive(
        "packed bytes past the end, in 64 bits",
        lambda: archive(GOOD, Part("x", central={"packed": WIDE, "extra": extra_64(2**63)})),
        "overlap",
    ),
    refused_archive("one file under many names", lambda: overlapping(50, ZEROS[:MOST]), "overlap"),
    refused_archive("files that quote each other", lambda: quoted(50, ZEROS[:1000]), "overlap"),
    refused_archive(
        "an end in 64 bits that says more", lambda: archive_64(GOOD, wide={"count": 2}), "damaged"
    ),
    refused_archive(
        "two ends that disagree", lambda: archive_64(GOOD, end={"count": 7, "here": 7}), "damaged"
    ),
    refused_archive("an end in 64 bits elsewhere", lambda: archive_64(GOOD, wide={"place": 0}), "damaged"),
    refused_archive(
        "an end in 64 bits of odd length", lambda: archive_64(GOOD, wide={"length": 45}), "damaged"
    ),
    refused_archive(
        "an end in 64 bits of absurd numbers", lambda: archive_64(GOOD, wide={"start": 2**63}), "damaged"
    ),
    refused_archive("a locator without an end", lambda: b"PK\6\7" + bytes(16) + archive()[-22:], "damaged"),
    refused_archive(
        "too many entries", lambda: archive(GOOD, Part("x")), "entries", DiscoveryCaps(entries=1)
    ),
    refused_archive(
        "more entries than 16 bits",
        lambda: archive_with_entries(0x10000),
        "entries",
        DiscoveryCaps(entries=0xFFFF),
    ),
    refused_archive(
        "too much altogether",
        lambda: archive(GOOD, Part("x", ZEROS[:99])),
        "total",
        DiscoveryCaps(total_bytes=99),
    ),
    refused_archive("a bomb of many files", lambda: archive(*bombs()), "total"),
    refused_archive(
        "too many refusals",
        lambda: archive(GOOD, Part("../a"), Part("../b")),
        "files",
        DiscoveryCaps(files=1),
    ),
]
ARCHIVES = [
    *ENTRIES,
    *SOUND,
    *WHOLE,
    *[with_good_part(name, Part(path), rule) for name, path, rule in PATHS],
    *[
        Case(name, partial(archive, GOOD, Part(path)), {displayed: rule})
        for name, path, displayed, rule in HIDDEN
    ],
    *[
        Case(name, partial(archive, GOOD, *map(Part, paths)), refused, tuple(accepted))
        for name, paths, refused, accepted in CLASHES
    ],
]


def shifted(before: bytes) -> bytes:
    """A self-extracting archive: all offsets include the data before the archive."""
    plain = archive(GOOD, end={"start": len(archive(GOOD)) - 22 - len(GOOD.record(0)) + len(before)})
    moved = archive(Part(GOOD.name, GOOD.content, central={"place": len(before)}))
    return before + moved[:-22] + plain[-22:]


def archive_with_entries(count: int) -> bytes:
    return archive_64(GOOD, *[Part(str(index), b"", 0) for index in range(count - 1)])


def bombs() -> list[Part]:
    content = ZEROS[:MOST]
    packed = deflated(content)
    return [Part(f"{index}.md", content, packed=packed) for index in range(65)]
