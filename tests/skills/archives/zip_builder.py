"""Build zip archives byte by byte, so that every header field can be set to an invalid value."""

import struct
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Any

REGULAR = 0o100644
LOCAL = "<4s5H3L2H"
CENTRAL = "<4s6H3L5H2L"
END = "<4s4H2LH"
END_64 = "<4sQ2H2L4Q"
LOCATOR = "<4sLQL"


# Cached: the compressed data is needed for the body and for the size in both headers.
@lru_cache(maxsize=64)
def deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


@dataclass(frozen=True)
class Part:
    """One file. `local` and `central` override header fields, `packed` overrides the compressed data."""

    name: str | bytes
    content: bytes = b"words"
    method: int = 8
    flags: int = 0
    mode: int = REGULAR
    packed: bytes | None = None
    extra: bytes = b""
    comment: bytes = b""
    descriptor: bytes = b""
    local: dict = field(default_factory=dict)
    central: dict = field(default_factory=dict)

    @property
    def raw_name(self) -> bytes:
        return self.name if isinstance(self.name, bytes) else self.name.encode()

    @property
    def body(self) -> bytes:
        if self.packed is not None:
            return self.packed
        return deflated(self.content) if self.method == 8 else self.content

    def says(self, overrides: dict) -> dict[str, Any]:
        truth = {
            "sign": b"",
            "name": self.raw_name,
            "flags": self.flags,
            "method": self.method,
            "crc": zlib.crc32(self.content),
            "packed": len(self.body),
            "size": len(self.content),
            "attributes": self.mode << 16,
            "extra": self.extra,
        }
        return {**truth, **overrides}

    def header(self) -> bytes:
        say = self.says({"sign": b"PK\3\4", **self.local})
        sizes = (say["crc"], say["packed"], say["size"], len(say["name"]), len(say["extra"]))
        head = struct.pack(LOCAL, say["sign"], 20, say["flags"], say["method"], 0, 33, *sizes)
        return b"".join([head, say["name"], say["extra"]])

    def record(self, offset: int) -> bytes:
        say = self.says({"sign": b"PK\1\2", "place": offset, "system": 3, **self.central})
        version_made_by = say["system"] << 8 | 20
        sizes = (
            say["crc"],
            say["packed"],
            say["size"],
            len(say["name"]),
            len(say["extra"]),
            len(self.comment),
        )
        head = struct.pack(
            CENTRAL,
            *(say["sign"], version_made_by, 20, say["flags"], say["method"], 0, 33, *sizes),
            *(0, 0, say["attributes"], say["place"]),
        )
        return b"".join([head, say["name"], say["extra"], self.comment])


def archive(*parts: Part, comment: bytes = b"", gap: bytes = b"", end: dict | None = None) -> bytes:
    """Concatenate the parts. `end` overrides fields of the end record."""
    pieces = [part.header() + part.body + part.descriptor for part in parts]
    places = list(accumulate(map(len, pieces), initial=0))[:-1]
    body = b"".join([*pieces, gap])
    table = b"".join([part.record(offset) for part, offset in zip(parts, places, strict=True)])
    return body + table + ending(len(parts), len(table), len(body), comment, end or {})


def ending(count: int, size: int, start: int, comment: bytes, end: dict) -> bytes:
    few = count & 0xFFFF
    say = {"disk": 0, "here": few, "count": few, "size": size, "start": start, **end}
    numbers = (say["disk"], say["disk"], say["here"], say["count"], say["size"], say["start"])
    return struct.pack(END, b"PK\5\6", *numbers, say.get("comment", len(comment))) + comment


def archive_64(*parts: Part, end: dict | None = None, wide: dict | None = None) -> bytes:
    """The same archive with a zip64 end record before the regular one."""
    plain = archive(*parts)
    *_, size, start, _ = struct.unpack(END, plain[-22:])
    at = len(plain) - 22
    say = {"count": len(parts), "size": size, "start": start, "place": at, "length": 44, **(wide or {})}
    record = struct.pack(
        END_64, b"PK\6\6", say["length"], 45, 45, 0, 0, say["count"], say["count"], say["size"], say["start"]
    )
    locator = struct.pack(LOCATOR, b"PK\6\7", 0, say["place"], 1)
    narrow = {"here": 0xFFFF, "count": 0xFFFF, "size": 0xFFFFFFFF, "start": 0xFFFFFFFF, **(end or {})}
    return plain[:at] + record + locator + ending(0, 0, 0, b"", narrow)


def overlapping(copies: int, content: bytes) -> bytes:
    """Many entries that point to the data of one file."""
    first = Part("AGENTS.md", content)
    body = first.header() + first.body
    table = b"".join([Part(f"{at}.md", content).record(0) for at in range(copies)])
    return body + table + ending(copies, len(table), len(body), b"", {})


def quoted(copies: int, content: bytes) -> bytes:
    """Each file's data contains the next header as a stored block and continues with the next file's data."""
    body, stream = b"", deflated(content)
    parts: list[tuple[Part, int]] = []
    for at in reversed(range(copies)):
        truth = {"crc": zlib.crc32(content), "size": len(content)}
        part = Part(f"{at}.md", packed=stream, local=truth, central=truth)
        header = part.header()
        body = header + stream
        parts.append((part, len(body)))
        # A stored deflate block: its length and the complement of the length.
        stream = struct.pack("<BHH", 0, len(header), len(header) ^ 0xFFFF) + body
        content = header + content
    table = b"".join([part.record(len(body) - length) for part, length in parts])
    return body + table + ending(copies, len(table), len(body), b"", {})
