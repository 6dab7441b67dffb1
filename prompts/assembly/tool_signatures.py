"""Signatures such as `search(query :string) -> [{id :int}]`: read strictly, written back in one form."""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, NoReturn

from prompts.assembly.errors import AssemblyError

# No honest signature comes near; beyond these, reading costs stack and the cache costs memory.
MAX_DEPTH = 32
MAX_SIGNATURE_LENGTH = 100_000

TOKEN_PATTERN = re.compile(r"\s+|(->|:?[^\W\d][\w./-]*\??|[][{}(),?])|(.)", re.DOTALL)
CLOSING_BRACKETS = {"(": ")", "{": "}"}

SignatureFields = list[tuple[str, str]]


class ToolSignature(NamedTuple):
    """A tool's signature: its name, if it says one, and the rest as text."""

    name: str
    arguments: str
    returns: str

    def text(self, name: str) -> str:
        """The whole on one line; a signature that says no name gets this one."""
        return f"{self.name or name}({self.arguments}) -> {self.returns}"


class SignatureSyntaxError(ValueError):
    """Where reading stopped, and why."""


def parse_tool_signature(text: str, path: str) -> ToolSignature:
    """Arguments and result of a tool; the path names the culprit when it does not parse."""
    try:
        return _parse_call(text)
    except SignatureSyntaxError as error:
        raise AssemblyError(path, f"does not parse {error}") from None


def parse_context_types(text: str, path: str) -> Mapping[str, str]:
    """The type of each key of a data context, written `{key :type, …}` or `(key :type, …)`."""
    try:
        return _parse_context(text)
    except SignatureSyntaxError as error:
        raise AssemblyError(path, f"does not parse {error}") from None


@lru_cache(maxsize=512)
def _parse_call(text: str) -> ToolSignature:
    reader = SignatureParser(text)
    name = "" if reader.word == "(" else reader.name("a tool's name or (")
    reader.take("(")
    arguments = join_signature_fields(reader.fields(")", 0))
    reader.take("->")
    returns = reader.kind(0)
    reader.end()
    return ToolSignature(name, arguments, returns)


@lru_cache(maxsize=512)
def _parse_context(text: str) -> Mapping[str, str]:
    reader = SignatureParser(text)
    if reader.word not in CLOSING_BRACKETS:
        reader.refuse("{ or (")
    closing = CLOSING_BRACKETS[reader.word]
    reader.advance()
    # `{:id :int}` and `{id :int}` name the same key.
    types = {name.removeprefix(":"): kind for name, kind in reader.fields(closing, 0)}
    reader.end()
    return MappingProxyType(types)


class SignatureParser:
    """One pass over the tokens of a signature; the end is a token of its own, the empty one."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_SIGNATURE_LENGTH:
            raise SignatureSyntaxError(
                f"at character {MAX_SIGNATURE_LENGTH + 1:,}: longer than any signature may be"
            )
        self.tokens = [
            (found[1] or found[2], found.start()) for found in TOKEN_PATTERN.finditer(text) if found.lastindex
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
        if not (is_type_keyword(self.word) or first == "_" or first.isalpha()):
            self.refuse(expected)
        return self.advance()

    def fields(self, closing: str, depth: int) -> SignatureFields:
        """Names with their types up to the closing bracket, commas between them."""
        said: SignatureFields = []
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
        if depth > MAX_DEPTH:
            self.refuse(f"brackets at most {MAX_DEPTH} deep")
        if is_type_keyword(self.word):
            return self.advance()
        if self.word == "[":
            self.advance()
            said = f"[{self.kind(depth + 1)}]"
            self.take("]")
        else:
            if self.word != "{":
                self.refuse("a type such as :string")
            self.advance()
            said = f"{{{join_signature_fields(self.fields('}', depth + 1))}}}"
        return said + self.advance() if self.word == "?" else said

    def end(self) -> None:
        if self.word:
            self.refuse("nothing more")

    def refuse(self, expected: str) -> NoReturn:
        found = f"found {self.word[:20]!r}" if self.word else "it ends"
        raise SignatureSyntaxError(
            f"at character {self.tokens[self.place][1] + 1:,}: expected {expected}, {found}"
        )


def is_type_keyword(token: str) -> bool:
    return token.startswith(":") and len(token) > 1


def join_signature_fields(fields: SignatureFields) -> str:
    return ", ".join([f"{name} {kind}" for name, kind in fields])
