"""Parse signatures such as `search(query :string) -> [{id :int}]` and format them uniformly."""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, NoReturn

from prompts.assembly.errors import AssemblyError

# Far above real signatures. The depth limits recursion; the length limits the memory of the parser caches.
MAX_DEPTH = 32
MAX_SIGNATURE_LENGTH = 100_000

TOKEN_PATTERN = re.compile(r"\s+|(->|:?[^\W\d][\w./-]*\??|[][{}(),?])|(.)", re.DOTALL)
CLOSING_BRACKETS = {"(": ")", "{": "}"}

SignatureFields = list[tuple[str, str]]


class ToolSignature(NamedTuple):
    """A parsed tool signature: the name (may be empty), and the arguments and the result type as text."""

    name: str
    arguments: str
    returns: str

    def text(self, name: str) -> str:
        """Format the signature on one line; `name` is used if the signature has no name of its own."""
        return f"{self.name or name}({self.arguments}) -> {self.returns}"


class ContextSignature(NamedTuple):
    """A parsed signature of a data context: the type of each key, and the result type (may be empty)."""

    types: Mapping[str, str]
    returns: str = ""


class SignatureSyntaxError(ValueError):
    """A syntax error in a signature; the message contains its position and the reason."""


def parse_tool_signature(text: str, path: str) -> ToolSignature:
    """Parse the signature of a tool; raise AssemblyError with `path` if it is invalid."""
    try:
        return _parse_call(text)
    except SignatureSyntaxError as error:
        raise AssemblyError(path, f"does not parse {error}") from None


def parse_context_signature(text: str, path: str) -> ContextSignature:
    """Parse the signature of a data context: `{key :type, …}` or `(key :type, …)`, then maybe `-> type`."""
    try:
        return _parse_context(text)
    except SignatureSyntaxError as error:
        raise AssemblyError(path, f"does not parse {error}") from None


@lru_cache(maxsize=512)
def _parse_call(text: str) -> ToolSignature:
    parser = SignatureParser(text)
    name = "" if parser.current == "(" else parser.parse_name("a tool's name or '('")
    parser.expect("(")
    arguments = join_signature_fields(parser.parse_fields(")", 0))
    parser.expect("->")
    returns = parser.parse_type(0)
    parser.expect_end()
    return ToolSignature(name, arguments, returns)


@lru_cache(maxsize=512)
def _parse_context(text: str) -> ContextSignature:
    parser = SignatureParser(text)
    if parser.current not in CLOSING_BRACKETS:
        parser.fail("'{' or '('")
    closing = CLOSING_BRACKETS[parser.current]
    parser.advance()
    # `{:id :int}` and `{id :int}` name the same key.
    types = {name.removeprefix(":"): kind for name, kind in parser.parse_fields(closing, 0)}
    returns = ""
    if parser.current == "->":
        parser.advance()
        returns = parser.parse_type(0)
    parser.expect_end()
    return ContextSignature(MappingProxyType(types), returns)


class SignatureParser:
    """A recursive descent parser for signatures; an empty token marks the end of the text."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_SIGNATURE_LENGTH:
            raise SignatureSyntaxError(
                f"at character {MAX_SIGNATURE_LENGTH + 1:,}: longer than any signature may be"
            )
        self.tokens = [
            (match[1] or match[2], match.start()) for match in TOKEN_PATTERN.finditer(text) if match.lastindex
        ]
        self.tokens.append(("", len(text)))
        self.position = 0
        self.current = self.tokens[0][0]

    def advance(self) -> str:
        token = self.current
        self.position += 1
        self.current = self.tokens[self.position][0]
        return token

    def expect(self, expected: str) -> None:
        if self.current != expected:
            self.fail(repr(expected))
        self.advance()

    def parse_name(self, expected: str) -> str:
        first = self.current[:1]
        if not (is_type_keyword(self.current) or first == "_" or first.isalpha()):
            self.fail(expected)
        return self.advance()

    def parse_fields(self, closing: str, depth: int) -> SignatureFields:
        """Parse comma-separated names with types up to the closing bracket."""
        fields: SignatureFields = []
        names: set[str] = set()
        while self.current != closing:
            if fields and self.current != ",":
                self.fail(f"',' or '{closing}'")
            if fields:
                self.advance()
            if self.current in names:
                self.fail("a name not used before")
            name = self.parse_name("a name")
            names.add(name)
            fields.append((name, self.parse_type(depth)))
        self.advance()
        return fields

    def parse_type(self, depth: int) -> str:
        """Parse `:word`, `[type]` or `{name type, …}`, each followed by `?` when it is optional."""
        if depth > MAX_DEPTH:
            self.fail(f"brackets at most {MAX_DEPTH} deep")
        if is_type_keyword(self.current):
            return self.advance()
        if self.current == "[":
            self.advance()
            type_text = f"[{self.parse_type(depth + 1)}]"
            self.expect("]")
        else:
            if self.current != "{":
                self.fail("a type such as :string")
            self.advance()
            type_text = f"{{{join_signature_fields(self.parse_fields('}', depth + 1))}}}"
        return type_text + self.advance() if self.current == "?" else type_text

    def expect_end(self) -> None:
        if self.current:
            self.fail("nothing more")

    def fail(self, expected: str) -> NoReturn:
        actual = f"found {self.current[:20]!r}" if self.current else "but the text ends"
        raise SignatureSyntaxError(
            f"at character {self.tokens[self.position][1] + 1:,}: expected {expected}, {actual}"
        )


def is_type_keyword(token: str) -> bool:
    return token.startswith(":") and len(token) > 1


def join_signature_fields(fields: SignatureFields) -> str:
    return ", ".join([f"{name} {kind}" for name, kind in fields])
