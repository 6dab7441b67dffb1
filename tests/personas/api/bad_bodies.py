"""Requests that nobody should send, each with the answer it must get: status, code, place of the fault."""

import json
from dataclasses import dataclass
from typing import Any

JSON = "application/json"


@dataclass(frozen=True)
class Bad:
    """One bad request."""

    name: str
    status: int
    code: str
    body: bytes
    path: str = "souls"
    method: str = "POST"
    kind: str = JSON
    where: str = ""  # pointer, parameter or header


def fault(name: str, value: Any, where: str, path: str = "souls", **more: Any) -> Bad:
    """A value that does not fit, at this pointer."""
    return Bad(name, 422, "invalid", json.dumps(value).encode(), path=path, where=where, **more)


def unreadable(name: str, body: bytes, path: str = "souls") -> Bad:
    return Bad(name, 400, "bad_json", body, path=path)


SOUL = {"label": "Calm"}
AGENT = {"slug": "nova", "name": "Nova"}
MANY_NAMES = b"{" + b",".join(b'"%d":1' % number for number in range(90_000)) + b',"89999":1}'
# Long, and with the one thing that does not fit at its very end.
HURTFUL = "a" * 900_000 + "\x01"
BAD = [
    # --- not JSON -----------------------------------------------------------------------------------------
    # Without a body nobody says what kind it is.
    Bad("nothing", 415, "unsupported_media_type", b"", where="Content-Type"),
    unreadable("only a space", b" "),
    unreadable("half an object", b'{"label": "Calm"'),
    unreadable("two values", b'{"label": "a"} {"label": "b"}'),
    unreadable("a form", b"label=Calm"),
    unreadable("single quotes", b"{'label': 'Calm'}"),
    unreadable("a trailing comma", b'{"label": "Calm",}'),
    unreadable("a comment", b'{"label": "Calm"} // said I'),
    unreadable("a byte order mark", b'\xef\xbb\xbf{"label": "Calm"}'),
    unreadable("UTF-16", '{"label": "Calm"}'.encode("utf-16")),
    unreadable("bad UTF-8", b'{"label": "\xff\xfe"}'),
    unreadable("overlong UTF-8", b'{"label": "\xc0\xaf"}'),
    unreadable("a raw control character", b'{"label": "a\x01b"}'),
    unreadable("NaN", b'{"label": NaN}'),
    unreadable("Infinity", b'{"label": Infinity}'),
    unreadable("minus Infinity", b'{"label": -Infinity}'),
    unreadable("a number beyond all", b'{"label": 1e999}'),
    unreadable("a huge integer", b'{"label": ' + b"9" * 5_000 + b"}"),
    unreadable("a long fraction", b'{"label": 0.' + b"1" * 5_000 + b"e400}"),
    unreadable("a name twice", b'{"label": "a", "label": "b"}'),
    unreadable("a name twice, deep", b'{"steps": [{"title": "a", "title": "b"}]}', "tasks"),
    unreadable("100,000 names and one of them twice", MANY_NAMES),
    unreadable("half a character twice as a name", b'{"\\ud800": 1, "\\ud800": 2}'),
    unreadable("half a character", b'{"label": "\\ud83d"}'),
    unreadable("the other half", b'{"label": "\\udc00x"}'),
    unreadable("half a character as a name", b'{"\\ud800": 1}'),
    unreadable("5,000 nested arrays", b"[" * 5_000 + b"]" * 5_000),
    unreadable("5,000 open arrays", b"[" * 5_000),
    unreadable("65 nested objects", b'{"a":' * 65 + b"1" + b"}" * 65),
    unreadable("100,000 open objects", b'{"a":' * 100_000),
    # --- of the wrong kind --------------------------------------------------------------------------------
    fault("null", None, ""),
    fault("a list", [], ""),
    fault("a word", "Calm", ""),
    fault("a number", 7, ""),
    fault("true", True, ""),
    fault("nothing in it", {}, "/label"),
    fault("a number for a word", {"label": 7}, "/label"),
    fault("null for a word", {"label": None}, "/label"),
    fault("a list for a word", {"label": ["Calm"]}, "/label"),
    fault("an object for a word", {"label": {"$ne": ""}}, "/label"),
    fault("a word for a truth", {"is_done": "yes"}, "/is_done", "tasks/1/steps/0:tick"),
    fault("a number for a truth", {"is_done": 1}, "/is_done", "tasks/1/steps/0:tick"),
    fault("a word for a list", AGENT | {"tools": "read"}, "/tools", "agents"),
    fault("a number in a list", AGENT | {"tools": [7]}, "/tools/0", "agents"),
    fault("one thing twice", AGENT | {"channels": ["web", "web"]}, "/channels", "agents"),
    fault("201 things", AGENT | {"tools": [f"t{n}" for n in range(201)]}, "/tools", "agents"),
    fault("a fraction for an id", {"by": 1.5}, "/by", "memories/1:supersede"),
    fault("a negative id", {"by": -1}, "/by", "memories/1:supersede"),
    fault("an id beyond the column", {"by": 2**63}, "/by", "memories/1:supersede"),
    # --- words that do not fit ----------------------------------------------------------------------------
    fault("an empty label", {"label": ""}, "/label"),
    fault("spaces for a label", {"label": "   "}, "/label"),
    fault("a label too long", {"label": "x" * 81}, "/label"),
    fault("a text too long", SOUL | {"text": "x" * 60_001}, "/text"),
    fault("a line break in a line", {"label": "a\nb"}, "/label"),
    fault("NUL", SOUL | {"text": "a\0b"}, "/text"),
    fault("a bell", SOUL | {"text": "a\x07b"}, "/text"),
    fault("a C1 control character", SOUL | {"text": "a\x85b"}, "/text"),
    fault("a slug in capitals", AGENT | {"slug": "Nova"}, "/slug", "agents"),
    fault("a slug with dots", AGENT | {"slug": "../etc"}, "/slug", "agents"),
    fault("a reserved slug", AGENT | {"slug": "new"}, "/slug", "agents"),
    fault("a layout nobody knows", AGENT | {"layout": "word"}, "/layout", "agents"),
    fault("a state nobody knows", {"text": "Tea.", "state": "believed"}, "/state", "memories"),
    fault("a state one may not choose", {"text": "Tea.", "state": "revoked"}, "/state", "memories"),
    fault(
        "a moment without offset",
        {"text": "T", "valid_from": "2026-03-07T10:00:00"},
        "/valid_from",
        "memories",
    ),
    fault("no such day", {"text": "T", "valid_from": "2026-02-30T10:00:00Z"}, "/valid_from", "memories"),
    fault("the year 0", {"text": "T", "valid_from": "0000-01-01T00:00:00Z"}, "/valid_from", "memories"),
    fault(
        "the end of time", {"text": "T", "valid_from": "9999-12-31T23:59:59-12:00"}, "/valid_from", "memories"
    ),
    fault("a tool's name with a space", {"name": "read file"}, "/name", "tools"),
    fault("a schema that is no object", {"name": "read", "parameters": "[]"}, "/parameters", "tools"),
    fault("a schema nested too deeply", {"name": "r", "parameters": "[" * 9_000}, "/parameters", "tools"),
    fault("a timezone nobody keeps", {"label": "G", "timezone": "Mars/Base"}, "/timezone", "user-profiles"),
    fault("front matter that is no YAML", {"label": "G", "extra": "a: [1"}, "/extra", "user-profiles"),
    fault("a line made to be read for long", {"label": HURTFUL}, "/label"),
    fault("a last line break", {"name": "read\n"}, "/name", "tools"),
    fault(
        "a list made to be compared for long",
        {"files": [{"id": n, "digest": "0" * 64} for n in range(1, 9_000)]},
        "/files",
        "context-files:adopt",
    ),
    # --- fields that are not there ------------------------------------------------------------------------
    fault("an unknown field", SOUL | {"colour": "red"}, "/colour"),
    fault("the workspace", SOUL | {"workspace": 1}, "/workspace"),
    fault("the id", SOUL | {"id": 1}, "/id"),
    fault("the revision", SOUL | {"revision": 9}, "/revision"),
    fault("a name with a slash", SOUL | {"a/b~c": 1}, "/a~1b~0c"),
    fault("__proto__", SOUL | {"__proto__": {}}, "/__proto__"),
    # --- how it was sent ----------------------------------------------------------------------------------
    Bad("2 MB", 413, "body_too_large", b'{"label": "' + b"x" * 2_000_000 + b'"}'),
    Bad(
        "a form's content type",
        415,
        "unsupported_media_type",
        b"label=Calm",
        kind="application/x-www-form-urlencoded",
    ),
    Bad("text", 415, "unsupported_media_type", b'{"label": "C"}', kind="text/plain"),
    Bad("XML", 415, "unsupported_media_type", b"<label/>", kind="application/xml"),
    Bad("no content type", 415, "unsupported_media_type", b'{"label": "C"}', kind=""),
    Bad("a strange method", 405, "method_not_allowed", b"{}", method="PUT"),
    Bad("an address that leads nowhere", 404, "not_found", b"{}", path="ghosts"),
    Bad("an id beyond the column in the address", 404, "not_found", b"{}", path=f"memories/{10**30}:approve"),
    Bad(
        "a parameter nobody knows", 422, "invalid", b"", path="souls?colour=red", method="GET", where="colour"
    ),
    Bad("a parameter twice", 422, "invalid", b"", path="souls?q=a&q=b", method="GET", where="q"),
    Bad("a limit of 0", 422, "invalid", b"", path="souls?limit=0", method="GET", where="limit"),
    Bad(
        "a limit in Arabic digits",
        422,
        "invalid",
        b"",
        path="souls?limit=%D9%A1",
        method="GET",
        where="limit",
    ),
    Bad("a cursor of one's own", 422, "invalid", b"", path="souls?cursor=AAAA", method="GET", where="cursor"),
    Bad("NUL in a search", 422, "invalid", b"", path="souls?q=a%00b", method="GET", where="q"),
    Bad("a field nobody has", 422, "invalid", b"", path="souls?fields=secret", method="GET", where="fields"),
    Bad(
        "a day for a moment",
        422,
        "invalid",
        b"",
        path="souls?updated_since=2026-03-07",
        method="GET",
        where="updated_since",
    ),
    Bad(
        "a key in the address",
        400,
        "bad_request",
        b"",
        path="souls?key=drm_bot_abc",
        method="GET",
        where="Authorization",
    ),
    Bad(
        "an Idempotency-Key of spaces",
        400,
        "bad_request",
        b'{"label": "C"}',
        path="souls#idempotency",
        where="Idempotency-Key",
    ),
]
