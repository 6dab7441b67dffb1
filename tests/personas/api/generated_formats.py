"""Strategies for the formats of texts that the OpenAPI document names (docs/api.md, “Formats”)."""

import json
from typing import Any

import schemathesis
from hypothesis import strategies as st

from core.timezones import list_timezone_names
from personas.api import schema
from personas.persona_files.format import ALL_KNOWN_KEYS

LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Letters, digits, punctuation and symbols of all scripts are printable.
PRINTABLE = st.characters(
    codec="utf-8", categories=["L", "Nd", "P", "S"], exclude_characters="/\\*~:", max_codepoint=0x2FFF
)
file_names = st.text(PRINTABLE, min_size=1, max_size=12).filter(
    lambda name: name.isprintable() and name not in {".", ".."}
)
plain_names = file_names.filter(lambda name: not set("?[]") & set(name))
relative_paths = st.lists(file_names, min_size=1, max_size=4).map("/".join)
posix_paths = relative_paths.map("/{}".format)
windows_paths = relative_paths.map(lambda path: "C:\\" + path.replace("/", "\\"))
absolute_paths = st.one_of(st.just(""), posix_paths, windows_paths)
folders = st.one_of(relative_paths, relative_paths.map("~/{}".format), posix_paths, windows_paths)
keys = st.text(LETTERS, min_size=1, max_size=8)
texts = st.text(max_size=20)


def make_json(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Return a strategy for JSON values whose keys and texts are from this strategy."""
    return st.recursive(
        st.none() | st.booleans() | st.integers(-(10**9), 10**9) | text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=6,
    )


# JSON is YAML, apart from some escape sequences.
front_matter = st.dictionaries(
    keys.filter(lambda key: key not in ALL_KNOWN_KEYS), make_json(keys), max_size=4
).map(lambda values: "".join(f"{key}: {json.dumps(value)}\n" for key, value in values.items()))
fields = st.dictionaries(keys, st.sampled_from([":int", ":string", ":bool", "[:float]"]), max_size=3).map(
    lambda types: ", ".join(f"{name} {kind}" for name, kind in types.items())
)
signatures = st.one_of(
    st.just(""), st.builds("({}) -> {{{}}}".format, fields, fields), fields.map("{{{}}}".format)
)
skill_files = st.builds(
    "---\nname: {}\ndescription: {}\n---\n\n{}\n".format,
    st.from_regex(r"[a-z]{1,10}(-[a-z0-9]{1,10}){0,2}", fullmatch=True),
    st.text(LETTERS, min_size=1).map(json.dumps),
    st.text(PRINTABLE, min_size=1),
)
path_patterns = st.lists(plain_names, min_size=1, max_size=4).map("/".join)
webhook_urls = st.lists(keys, max_size=3).map(lambda names: "https://127.0.0.1/" + "/".join(names))
FORMATS: dict[str, st.SearchStrategy[Any]] = {
    schema.TIME_ZONE_FORMAT: st.sampled_from(["", *list_timezone_names()]),
    schema.FRONT_MATTER_FORMAT: front_matter,
    schema.SKILL_FILE_FORMAT: skill_files,
    schema.RELATIVE_PATH_FORMAT: relative_paths,
    schema.ABSOLUTE_PATH_FORMAT: absolute_paths,
    schema.FOLDER_FORMAT: folders,
    schema.FILE_NAME_FORMAT: file_names,
    schema.SIGNATURE_FORMAT: signatures,
    schema.PATH_PATTERN_FORMAT: path_patterns,
    # The settings of the test allow this address.
    schema.WEBHOOK_URL_FORMAT: webhook_urls,
    schema.JSON_OBJECT_FORMAT: st.dictionaries(texts, make_json(texts), max_size=3).map(json.dumps),
}


def register_formats() -> None:
    for name, strategy in FORMATS.items():
        schemathesis.openapi.format(name, strategy)
