"""Odd archives and lists, each with the rule by which it is refused; what is sound beside it is taken."""

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
    """What was sent, the refusals by path and rule, and the paths that are taken beside AGENTS.md."""

    name: str
    data: Callable[[], bytes]
    refused: dict[str, str] = field(default_factory=dict)
    taken: tuple[str, ...] = ()
    caps: DiscoveryCaps = field(default_factory=DiscoveryCaps)

    @property
    def expected(self) -> list[str]:
        return [] if "." in self.refused else sorted({"AGENTS.md", *self.taken})


def beside(
    name: str, part: Part, rule: str = "", *, taken: tuple[str, ...] = (), caps: DiscoveryCaps | None = None
) -> Case:
    """A part beside a good one, with the rule by which it is refused."""
    refused = {str(part.name): rule} if rule else {}
    return Case(name, lambda: archive(GOOD, part), refused, taken, caps or DiscoveryCaps())


def whole(name: str, data: Callable[[], bytes], rule: str, caps: DiscoveryCaps | None = None) -> Case:
    return Case(name, data, {".": rule}, (), caps or DiscoveryCaps())


def sound(name: str, data: Callable[[], bytes], *taken: str, caps: DiscoveryCaps | None = None) -> Case:
    return Case(name, data, {}, taken, caps or DiscoveryCaps())


def extra_64(*numbers: int) -> bytes:
    return struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers)


WIDE = 0xFFFFFFFF
LATER = {"size": WIDE}
BOMB = Part("bomb.md", ZEROS[: MOST + 1])
# Ten bytes are announced, a quarter of a megabyte comes.
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
# What is shown of these is not what was sent.
HIDDEN = [
    ("no name", "", "(no name)", "name"),
    ("a lone dot", ".", "(no name)", "path"),
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
    *[beside(f"special file: {rule}", Part("x.md", mode=kind | 0o777), rule) for rule, kind in MODES.items()],
    beside("link from a system that has none", Part("x", mode=0o120777, central={"system": 0}), "link"),
    beside("folder by mode", Part("x.md", b"", mode=0o040755), "folder"),
    beside("folder by the DOS mark", Part("x.md", b"", central={"attributes": 0x10}), "folder"),
    Case("folder with bytes", lambda: archive(GOOD, Part("x/", b"hidden")), {"x": "folder"}),
    Case("folder out of the push", lambda: archive(GOOD, Part("../x/", b"")), {"../x": "outside"}),
    Case("link named like a folder", lambda: archive(GOOD, Part("x/", b"", mode=0o120777)), {"x": "link"}),
    Case("folder where a file is", lambda: archive(GOOD, Part("x"), Part("x/", b"")), {"x": "folder"}),
    Case(
        "deeper folder where a file is", lambda: archive(GOOD, Part("x"), Part("x/y/", b"")), {"x": "folder"}
    ),
    beside("encrypted", Part("x.md", flags=1), "encrypted"),
    beside("strongly encrypted", Part("x.md", flags=0x41), "encrypted"),
    beside("encrypted by one header only", Part("x.md", local={"flags": 1}), "mismatch"),
    *[
        beside(f"compression method {method}", Part("x.md", method=method), "compression")
        for method in (1, 6, 9, 12, 14, 93, 95, 99)
    ],
    beside("a patch", Part("x.md", flags=0x20), "compression"),
    beside("wrong checksum", Part("x.md", local={"crc": 7}, central={"crc": 7}), "damaged"),
    beside("bytes that cannot be unpacked", Part("x.md", packed=b"\xff" * 9), "damaged"),
    beside("stored bytes that were changed", Part("x.md", b"words", 0, packed=b"sword"), "damaged"),
    beside(
        "cut off while packed", Part("x.md", ZEROS[:99], packed=deflated(ZEROS[:99])[:-2]), rule="mismatch"
    ),
    beside("more after the packed bytes", Part("x.md", packed=deflated(b"words") + b"more"), "mismatch"),
    beside("larger than both headers say", LIAR, "mismatch"),
    beside("smaller than both headers say", Part("x.md", ZEROS[:9], packed=deflated(b"")), "mismatch"),
    beside("stored, larger than said", Part("x.md", b"words", 0, packed=b"words and more"), "mismatch"),
    beside("headers with two names", Part("x.md", local={"name": b"y.md"}), "mismatch"),
    beside("headers with a way out", Part("x.md", local={"name": b"../x.md"}), "mismatch"),
    beside("headers with two sizes", Part("x.md", local={"size": 4}), "mismatch"),
    beside("headers with two methods", Part("x.md", local={"method": 0}), "mismatch"),
    beside("headers with two checksums", Part("x.md", local={"crc": 1}), "mismatch"),
    beside("one byte too large", BOMB, "size"),
    beside("as large as allowed", Part("x.md", ZEROS[:MOST]), taken=("x.md",)),
    beside("fifty megabytes in fifty kilobytes", Part("x.md", ZEROS), "size"),
    beside(
        "64 bits of lies",
        Part("x.md", local=LATER, central={"size": WIDE, "extra": extra_64(2**63)}),
        rule="size",
    ),
    beside("64 bits promised and not given", Part("x.md", local=LATER, central={"size": WIDE}), "size"),
    beside(
        "64 bits that tell the truth",
        Part("x.md", central={"size": WIDE, "extra": b"\x99\x99\2\0ab" + extra_64(5)}, local=LATER),
        taken=("x.md",),
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
    beside("a lower cap", Part("x.md", ZEROS[:99]), "size", caps=DiscoveryCaps(file_bytes=98)),
]

SOUND = [
    sound("stored", lambda: archive(GOOD, Part("x.md", method=0)), "x.md"),
    sound("a commit in the comment", lambda: archive(GOOD, comment=b"5" * 40)),
    sound("the longest comment", lambda: archive(GOOD, comment=b"c" * 0xFFFF)),
    sound("a comment that looks like an end", lambda: archive(GOOD, comment=b"PK\5\6 and no more")),
    sound("a comment that begins like an end", lambda: archive(GOOD, comment=b"PK\5\6")),
    sound("comments of entries", lambda: archive(GOOD, Part("x.md", comment=b"PK\1\2" * 9)), "x.md"),
    sound("folders", lambda: archive(Part("b/", b"", 0, mode=0o040755), GOOD, Part("b/c.md")), "b/c.md"),
    sound("a packed folder", lambda: archive(Part("b/", b"", mode=0), GOOD)),
    sound("an empty file", lambda: archive(GOOD, Part("x.md", b"")), "x.md"),
    sound("UTF-8 without the mark", lambda: archive(GOOD, Part("é/ß.md")), "é/ß.md"),
    sound("UTF-8 with the mark", lambda: archive(GOOD, Part("é/ß.md", flags=0x800)), "é/ß.md"),
    sound("an archive inside", lambda: archive(GOOD, Part("in.zip", NESTED, 0)), "in.zip"),
    sound("a packed archive inside", lambda: archive(GOOD, Part("in.zip", NESTED)), "in.zip"),
    sound(
        "sizes that follow the bytes",
        lambda: archive(
            Part("x", flags=8, local={"size": 0, "packed": 0, "crc": 0}, descriptor=b"PK\7\x08" + bytes(12)),
            GOOD,
        ),
        "x",
    ),
    sound("no mode at all", lambda: archive(GOOD, Part("x.md", mode=0, central={"system": 0})), "x.md"),
    sound("an end in 64 bits", lambda: archive_64(GOOD)),
    sound("dates that never were", lambda: archive(GOOD).replace(struct.pack("<HH", 0, 33), b"\xff" * 4)),
]

WHOLE = [
    whole("nothing", lambda: b"", "not-zip"),
    whole("a text", lambda: b"# Hello\n" * 99, "not-zip"),
    whole("a gzip", lambda: gzip.compress(b"words"), "not-zip"),
    whole("an archive without its end", lambda: archive(GOOD)[:-23], "not-zip"),
    whole("an archive without its last byte", lambda: archive(GOOD)[:-1], "surplus"),
    whole("an archive without its first byte", lambda: archive(GOOD)[1:], "damaged"),
    whole("only an end", lambda: b"PK\5\6", "surplus"),
    whole("something before", lambda: b"GIF89a" + archive(GOOD), "surplus"),
    whole("something before, and the numbers mended", lambda: shifted(b"#!/bin/sh\n"), "surplus"),
    whole("something after", lambda: archive(GOOD) + b"more", "surplus"),
    whole("something between", lambda: archive(GOOD, gap=b"hidden words" * 9), "surplus"),
    whole("two archives in a row", lambda: archive(GOOD) + archive(GOOD), "surplus"),
    whole("an archive in the comment", lambda: archive(GOOD, comment=archive(Part("evil.md"))), "ambiguous"),
    whole("one of several parts", lambda: archive(GOOD, end={"disk": 1}), "parts"),
    whole("some of its entries elsewhere", lambda: archive(GOOD, end={"here": 0}), "parts"),
    whole("all encrypted", lambda: archive(Part("b/", b""), Part("x", flags=1)), "encrypted"),
    whole("fewer entries than said", lambda: archive(GOOD, end={"here": 2, "count": 2}), "damaged"),
    whole("more entries than said", lambda: archive(GOOD, GOOD, end={"here": 1, "count": 1}), "damaged"),
    whole("no entries said", lambda: archive(GOOD, end={"here": 0, "count": 0}), "damaged"),
    whole("a table that starts early", lambda: archive(GOOD, end={"start": 1}), "surplus"),
    whole("a table that is too long", lambda: archive(GOOD, end={"size": 999}), "damaged"),
    whole("a record with a wrong sign", lambda: archive(Part("x", central={"sign": b"PK\1\3"})), "damaged"),
    whole("a header with a wrong sign", lambda: archive(Part("x", local={"sign": b"PK\3\5"})), "damaged"),
    whole("a place outside", lambda: archive(GOOD, Part("x", central={"place": 10**6})), "damaged"),
    whole(
        "a place outside, in 64 bits",
        lambda: archive(GOOD, Part("x", central={"place": WIDE, "extra": extra_64(2**64 - 1)})),
        "damaged",
    ),
    whole(
        "packed bytes past the end", lambda: archive(GOOD, Part("x", central={"packed": 10**6})), "overlap"
    ),
    whole(
        "packed bytes past the end, in 64 bits",
        lambda: archive(GOOD, Part("x", central={"packed": WIDE, "extra": extra_64(2**63)})),
        "overlap",
    ),
    whole("one file under many names", lambda: overlapping(50, ZEROS[:MOST]), "overlap"),
    whole("files that quote each other", lambda: quoted(50, ZEROS[:1000]), "overlap"),
    whole("an end in 64 bits that says more", lambda: archive_64(GOOD, wide={"count": 2}), "damaged"),
    whole("two ends that disagree", lambda: archive_64(GOOD, end={"count": 7, "here": 7}), "damaged"),
    whole("an end in 64 bits elsewhere", lambda: archive_64(GOOD, wide={"place": 0}), "damaged"),
    whole("an end in 64 bits of odd length", lambda: archive_64(GOOD, wide={"length": 45}), "damaged"),
    whole("an end in 64 bits of absurd numbers", lambda: archive_64(GOOD, wide={"start": 2**63}), "damaged"),
    whole("a locator without an end", lambda: b"PK\6\7" + bytes(16) + archive()[-22:], "damaged"),
    whole("too many entries", lambda: archive(GOOD, Part("x")), "entries", DiscoveryCaps(entries=1)),
    whole("more entries than 16 bits", lambda: many(0x10000), "entries", DiscoveryCaps(entries=0xFFFF)),
    whole(
        "too much altogether",
        lambda: archive(GOOD, Part("x", ZEROS[:99])),
        "total",
        DiscoveryCaps(total_bytes=99),
    ),
    whole("a bomb of many files", lambda: archive(*bombs()), "total"),
    whole(
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
    *[beside(name, Part(path), rule) for name, path, rule in PATHS],
    *[Case(name, partial(archive, GOOD, Part(path)), {shown: rule}) for name, path, shown, rule in HIDDEN],
    *[
        Case(name, partial(archive, GOOD, *map(Part, paths)), refused, tuple(taken))
        for name, paths, refused, taken in CLASHES
    ],
]


def shifted(before: bytes) -> bytes:
    """As a self-extracting archive: every place counts what stands before."""
    plain = archive(GOOD, end={"start": len(archive(GOOD)) - 22 - len(GOOD.record(0)) + len(before)})
    moved = archive(Part(GOOD.name, GOOD.content, central={"place": len(before)}))
    return before + moved[:-22] + plain[-22:]


def many(count: int) -> bytes:
    return archive_64(GOOD, *[Part(str(at), b"", 0) for at in range(count - 1)])


def bombs() -> list[Part]:
    content = ZEROS[:MOST]
    packed = deflated(content)
    return [Part(f"{at}.md", content, packed=packed) for at in range(65)]
