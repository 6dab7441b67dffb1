"""Signatures such as `search(query :string) -> [{id :int}]`: read strictly, written back in one form."""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, NoReturn

from prompts.assembly.errors import AssemblyError

# No honest signature comes near; beyond these, reading costs stack and the cache costs memory.
DEEPEST = 32
LONGEST = 100_000

TOKEN = re.compile(r"\s+|(->|:?[^\W\d][\w./-]*\??|[][{}(),?])|(.)", re.DOTALL)
CLOSING = {"(": ")", "{": "}"}

Fields = list[tuple[str, str]]


class Call(NamedTuple):
    """A tool's signature: its name, if it says one, and the rest as text."""

    name: str
    arguments: str
    returns: str

    def text(self, name: str) -> str:
        """The whole on one line; a signature that says no name gets this one."""
        return f"{self.name or name}({self.arguments}) -> {self.returns}"


class Unreadable(ValueError):
    """Where reading stopped, and why."""


def call_signature(text: str, path: str) -> Call:
    """Arguments and result of a tool; the path names the culprit when it does not parse."""
    try:
        return _read_call(text)
    except Unreadable as error:
        raise AssemblyError(path, f"does not parse {error}") from None


def context_types(text: str, path: str) -> Mapping[str, str]:
    """The type of each key of a data context, written `{key :type, …}` or `(key :type, …)`."""
    try:
        return _read_context(text)
    except Unreadable as error:
        raise AssemblyError(path, f"does not parse {error}") from None


@lru_cache(maxsize=512)
def _read_call(text: str) -> Call:
    reader = Reader(text)
    name = "" if reader.word == "(" else reader.name("a tool's name or (")
    reader.take("(")
    arguments = joined(reader.fields(")", 0))
    reader.take("->")
    returns = reader.kind(0)
    reader.end()
    return Call(name, arguments, returns)


@lru_cache(maxsize=512)
def _read_context(text: str) -> Mapping[str, str]:
    reader = Reader(text)
    if reader.word not in CLOSING:
        reader.refuse("{ or (")
    closing = CLOSING[reader.word]
    reader.advance()
    # `{:id :int}` and `{id :int}` name the same key.
    types = {name.removeprefix(":"): kind for name, kind in reader.fields(closing, 0)}
    reader.end()
    return MappingProxyType(types)


class Reader:
    """One pass over the tokens of a signature; the end is a token of its own, the empty one."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise Unreadable(f"at character {LONGEST + 1:,}: longer than any signature may be")
        self.tokens = [
            (found[1] or found[2], found.start()) for found in TOKEN.finditer(text) if found.lastindex
        ]
        self.tokens.append(("", len(text)))
        self.place = 0
        self.word = self.tokens[0][0]

    def advance(self) -> str:
        taken = self.word
        self.place += 1
        self.word = self.tokens[self.place][0]
        return taken

    def take(self, expected: str) -> None:
        if self.word != expected:
            self.refuse(expected)
        self.advance()

    def name(self, expected: str) -> str:
        first = self.word[:1]
        if not (is_keyword(self.word) or first == "_" or first.isalpha()):
            self.refuse(expected)
        return self.advance()

    def fields(self, closing: str, depth: int) -> Fields:
        """Names with their types up to the closing bracket, commas between them."""
        said: Fields = []
        names: set[str] = set()
        while self.word != closing:
            if said:
                self.take(",")
            if self.word in names:
                self.refuse("a name not used before")
            name = self.name("a name")
            names.add(name)
            said.append((name, self.kind(depth)))
        self.advance()
        return said

    def kind(self, depth: int) -> str:
        """`:word`, `[type]` or `{name type, …}`, each with `?` behind it when it may be absent."""
        if depth > DEEPEST:
            self.refuse(f"brackets at most {DEEPEST} deep")
        if is_keyword(self.word):
            return self.advance()
        if self.word == "[":
            self.advance()
            said = f"[{self.kind(depth + 1)}]"
            self.take("]")
        else:
            if self.word != "{":
                self.refuse("a type such as :string")
            self.advance()
            said = f"{{{joined(self.fields('}', depth + 1))}}}"
        return said + self.advance() if self.word == "?" else said

    def end(self) -> None:
        if self.word:
            self.refuse("nothing more")

    def refuse(self, expected: str) -> NoReturn:
        found = f"found {self.word[:20]!r}" if self.word else "it ends"
        raise Unreadable(f"at character {self.tokens[self.place][1] + 1:,}: expected {expected}, {found}")


def is_keyword(token: str) -> bool:
    return token.startswith(":") and len(token) > 1


def joined(fields: Fields) -> str:
    return ", ".join([f"{name} {kind}" for name, kind in fields])
