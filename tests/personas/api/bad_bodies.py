"""Bad requests, each with the expected status, code and location of the error."""

import json
from dataclasses import dataclass
from typing import Any

JSON = "application/json"


@dataclass(frozen=True)
class BadRequest:
    """One bad request and the expected problem."""

    name: str
    status: int
    code: str
    body: bytes
    path: str = "souls"
    method: str = "POST"
    kind: str = JSON
    where: str = ""  # pointer, parameter or header


def invalid_value(name: str, value: Any, where: str, path: str = "souls", **options: Any) -> BadRequest:
    """Return a request with an invalid value at this JSON pointer."""
    return BadRequest(name, 422, "invalid", json.dumps(value).encode(), path=path, where=where, **options)


def unreadable(name: str, body: bytes, path: str = "souls") -> BadRequest:
    return BadRequest(name, 400, "invalid_json", body, path=path)


SOUL = {"name": "Calm"}
AGENT = {"slug": "nova", "name": "Nova"}
MANY_NAMES = b"{" + b",".join(b'"%d":1' % number for number in range(90_000)) + b',"89999":1}'
# Long, with the invalid character at the very end.
HURTFUL = "a" * 900_000 + "\x01"
BAD = [
    # --- not JSON -----------------------------------------------------------------------------------------
    # Without a body there is no content type.
    BadRequest("nothing", 415, "unsupported_media_type", b"", where="Content-Type"),
    unreadable("only a space", b" "),
    unreadable("half an object", b'{"name": "Calm"'),
    unreadable("two values", b'{"name": "a"} {"name": "b"}'),
    unreadable("a form", b"name=Calm"),
    unreadable("single quotes", b"{'label': 'Calm'}"),
    unreadable("a trailing comma", b'{"name": "Calm",}'),
    unreadable("a comment", b'{"name": "Calm"} // said I'),
    unreadable("a byte order mark", b'\xef\xbb\xbf{"name": "Calm"}'),
    unreadable("UTF-16", '{"name": "Calm"}'.encode("utf-16")),
    unreadable("bad UTF-8", b'{"name": "\xff\xfe"}'),
    unreadable("overlong UTF-8", b'{"name": "\xc0\xaf"}'),
    unreadable("a raw control character", b'{"name": "a\x01b"}'),
    unreadable("NaN", b'{"name": NaN}'),
    unreadable("Infinity", b'{"name": Infinity}'),
    unreadable("minus Infinity", b'{"name": -Infinity}'),
    unreadable("a number beyond all", b'{"name": 1e999}'),
    unreadable("a huge integer", b'{"name": ' + b"9" * 5_000 + b"}"),
    unreadable("a long fraction", b'{"name": 0.' + b"1" * 5_000 + b"e400}"),
    unreadable("a name twice", b'{"name": "a", "name": "b"}'),
    unreadable("a name twice, deep", b'{"steps": [{"title": "a", "title": "b"}]}', "tasks"),
    unreadable("100,000 names and one of them twice", MANY_NAMES),
    unreadable("a lone surrogate twice as a name", b'{"\\ud800": 1, "\\ud800": 2}'),
    unreadable("a lone surrogate", b'{"name": "\\ud83d"}'),
    unreadable("the other half", b'{"name": "\\udc00x"}'),
    unreadable("a lone surrogate as a name", b'{"\\ud800": 1}'),
    unreadable("5,000 nested arrays", b"[" * 5_000 + b"]" * 5_000),
    unreadable("5,000 open arrays", b"[" * 5_000),
    unreadable("65 nested objects", b'{"a":' * 65 + b"1" + b"}" * 65),
    unreadable("100,000 open objects", b'{"a":' * 100_000),
    # --- wrong type ---------------------------------------------------------------------------------------
    invalid_value("null", None, ""),
    invalid_value("a list", [], ""),
    invalid_value("a word", "Calm", ""),
    invalid_value("a number", 7, ""),
    invalid_value("true", True, ""),
    invalid_value("nothing in it", {}, "/name"),
    invalid_value("a number for a word", {"name": 7}, "/name"),
    invalid_value("null for a word", {"name": None}, "/name"),
    invalid_value("a list for a word", {"name": ["Calm"]}, "/name"),
    invalid_value("an object for a word", {"name": {"$ne": ""}}, "/name"),
    invalid_value("a word for a truth", {"is_done": "yes"}, "/is_done", "tasks/1/steps/0:complete"),
    invalid_value("a number for a truth", {"is_done": 1}, "/is_done", "tasks/1/steps/0:complete"),
    invalid_value("a word for a list", AGENT | {"tools": "read"}, "/tools", "agents"),
    invalid_value("a number in a list", AGENT | {"tools": [7]}, "/tools/0", "agents"),
    invalid_value("one thing twice", AGENT | {"channels": ["web", "web"]}, "/channels", "agents"),
    invalid_value("201 things", AGENT | {"tools": [f"t{n}" for n in range(201)]}, "/tools", "agents"),
    invalid_value("a fraction for an id", {"superseded_by": 1.5}, "/superseded_by", "memories/1:supersede"),
    invalid_value("a negative id", {"superseded_by": -1}, "/superseded_by", "memories/1:supersede"),
    invalid_value("an id too large", {"superseded_by": 2**63}, "/superseded_by", "memories/1:supersede"),
    # --- invalid text -------------------------------------------------------------------------------------
    invalid_value("an empty name", {"name": ""}, "/name"),
    invalid_value("spaces for a name", {"name": "   "}, "/name"),
    invalid_value("spaces for a text", {"text": "  \n "}, "/text", "memories"),
    invalid_value("spaces for an imported text", ["   "], "/0", "memories:import"),
    invalid_value("a name too long", {"name": "x" * 81}, "/name"),
    invalid_value("a text too long", SOUL | {"text": "x" * 60_001}, "/text"),
    invalid_value("a line break in a line", {"name": "a\nb"}, "/name"),
    invalid_value("NUL", SOUL | {"text": "a\0b"}, "/text"),
    invalid_value("a bell", SOUL | {"text": "a\x07b"}, "/text"),
    invalid_value("a C1 control character", SOUL | {"text": "a\x85b"}, "/text"),
    invalid_value("a slug in capitals", AGENT | {"slug": "Nova"}, "/slug", "agents"),
    invalid_value("a slug with dots", AGENT | {"slug": "../etc"}, "/slug", "agents"),
    invalid_value("a reserved slug", AGENT | {"slug": "new"}, "/slug", "agents"),
    invalid_value("a layout nobody knows", AGENT | {"layout": "word"}, "/layout", "agents"),
    invalid_value("a status nobody knows", {"text": "Tea.", "status": "believed"}, "/status", "memories"),
    invalid_value(
        "a status one may not choose", {"text": "Tea.", "status": "revoked"}, "/status", "memories"
    ),
    invalid_value(
        "a moment without offset",
        {"text": "T", "valid_from": "2026-03-07T10:00:00"},
        "/valid_from",
        "memories",
    ),
    invalid_value(
        "no such day", {"text": "T", "valid_from": "2026-02-30T10:00:00Z"}, "/valid_from", "memories"
    ),
    invalid_value(
        "no such month", {"text": "T", "valid_from": "2026-13-01T10:00:00Z"}, "/valid_from", "memories"
    ),
    invalid_value(
        "no such hour", {"text": "T", "valid_from": "2026-03-07T25:00:00Z"}, "/valid_from", "memories"
    ),
    invalid_value("a tool's name with a space", {"name": "read file"}, "/name", "tools"),
    invalid_value("a schema that is no object", {"name": "read", "parameters": "[]"}, "/parameters", "tools"),
    invalid_value(
        "a schema nested too deeply", {"name": "r", "parameters": "[" * 9_000}, "/parameters", "tools"
    ),
    invalid_value(
        "a timezone nobody keeps", {"name": "G", "timezone": "Mars/Base"}, "/timezone", "user-profiles"
    ),
    invalid_value("front matter that is no YAML", {"name": "G", "extra": "a: [1"}, "/extra", "user-profiles"),
    invalid_value("a line made to be read for long", {"name": HURTFUL}, "/name"),
    invalid_value("a last line break", {"name": "read\n"}, "/name", "tools"),
    invalid_value(
        "a list made to be compared for long",
        {"files": [{"id": n, "digest": "0" * 64} for n in range(1, 9_000)]},
        "/files",
        "context-files:approve",
    ),
    # --- unknown fields -----------------------------------------------------------------------------------
    invalid_value("an unknown field", SOUL | {"colour": "red"}, "/colour"),
    invalid_value("the workspace", SOUL | {"workspace": 1}, "/workspace"),
    invalid_value("the id", SOUL | {"id": 1}, "/id"),
    invalid_value("the revision", SOUL | {"revision": 9}, "/revision"),
    invalid_value("a name with a slash", SOUL | {"a/b~c": 1}, "/a~1b~0c"),
    invalid_value("__proto__", SOUL | {"__proto__": {}}, "/__proto__"),
    # --- HTTP: size, content type, method, URL, headers ---------------------------------------------------
    BadRequest("2 MB", 413, "body_too_large", b'{"name": "' + b"x" * 2_000_000 + b'"}'),
    BadRequest(
        "a form's content type",
        415,
        "unsupported_media_type",
        b"name=Calm",
        kind="application/x-www-form-urlencoded",
    ),
    BadRequest("text", 415, "unsupported_media_type", b'{"name": "C"}', kind="text/plain"),
    BadRequest("XML", 415, "unsupported_media_type", b"<label/>", kind="application/xml"),
    BadRequest("no content type", 415, "unsupported_media_type", b'{"name": "C"}', kind=""),
    BadRequest("a strange method", 405, "method_not_allowed", b"{}", method="PUT"),
    BadRequest("an address that leads nowhere", 404, "not_found", b"{}", path="ghosts"),
    BadRequest(
        "an id beyond the column in the address", 404, "not_found", b"{}", path=f"memories/{10**30}:approve"
    ),
    BadRequest(
        "a parameter nobody knows", 422, "invalid", b"", path="souls?colour=red", method="GET", where="colour"
    ),
    BadRequest("a parameter twice", 422, "invalid", b"", path="souls?q=a&q=b", method="GET", where="q"),
    BadRequest("a limit of 0", 422, "invalid", b"", path="souls?limit=0", method="GET", where="limit"),
    BadRequest(
        "a limit in Arabic digits",
        422,
        "invalid",
        b"",
        path="souls?limit=%D9%A1",
        method="GET",
        where="limit",
    ),
    BadRequest(
        "a cursor of one's own", 422, "invalid", b"", path="souls?cursor=AAAA", method="GET", where="cursor"
    ),
    BadRequest("NUL in a search", 422, "invalid", b"", path="souls?q=a%00b", method="GET", where="q"),
    BadRequest(
        "a field nobody has", 422, "invalid", b"", path="souls?fields=secret", method="GET", where="fields"
    ),
    BadRequest(
        "a day for a moment",
        422,
        "invalid",
        b"",
        path="souls?updated_since=2026-03-07",
        method="GET",
        where="updated_since",
    ),
    BadRequest(
        "a key in the address",
        400,
        "bad_request",
        b"",
        path="souls?key=drm_bot_abc",
        method="GET",
        where="Authorization",
    ),
    BadRequest(
        "an Idempotency-Key of spaces",
        400,
        "bad_request",
        b'{"name": "C"}',
        path="souls#idempotency",
        where="Idempotency-Key",
    ),
]
