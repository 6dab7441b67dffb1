"""Finds text in templates that is shown to users and not marked for translation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser

from django.template.base import Lexer, Token, TokenType
from django.utils.translation.template import templatize
from jinja2 import Environment, nodes
from jinja2.ext import extract_from_ast

# Their content is code, or the same in every language.
MACHINE_ELEMENTS = {"script", "style", "code", "pre", "kbd"}
MACHINE_CLASS = "dr-mono"
VOID_ELEMENTS = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
HUMAN_ATTRIBUTES = {
    "alt",
    "aria-description",
    "aria-label",
    "aria-roledescription",
    "aria-valuetext",
    "data-confirm",
    "data-label",
    "data-many",
    "data-one",
    "label",
    "placeholder",
    "title",
}
# Names, keys and formats that are not translated.
SAME_EVERYWHERE = {"API", "CSV", "Ctrl", "Dramatis", "Esc", "JSON", "OpenAPI", "Python", "RFC", "UTC", "curl"}

# Arguments of template tags that are shown to users, by name or by position.
HUMAN_ARGUMENTS = {
    "action_label",
    "label",
    "more",
    "name",
    "nothing",
    "placeholder",
    "text",
    "title",
    "words",
}
HUMAN_PLACES = {"badge": 1, "column": 2, "no_permission": 2}
SILENT_BLOCKS = {"blocktranslate", "blocktrans", "comment"}
# Blocks that fill a class attribute.
LOOK_BLOCK = re.compile(r"block \w+_look")
LITERAL = r"(?:\"[^\"]*\"|'[^']*')"
MARKED = re.compile(rf"_\({LITERAL}\)")
ARGUMENT = re.compile(rf"(?:(?P<name>\w+)=)?(?P<value>{LITERAL})|\S+")
FALLBACK = re.compile(rf"\|(?:default|default_if_none|yesno):(?P<value>{LITERAL})")
# A single letter is a unit, a key or a prefix, such as the r of r12.
WORD = re.compile(r"[^\W\d_]{2,}")
# The editor's identifier of a phrase; its translation is in another attribute.
MACHINE_ATTRIBUTES = {"data-phrase"}
# A message in the output of Django's `templatize`.
TEMPLATIZED = re.compile(rf"_\(({LITERAL})\)")
GETTEXT_FUNCTIONS = ("_", "gettext", "ngettext")
# A capitalized word, or two words. Routes, states, classes and names of icons are neither.
JINJA_TEXT = re.compile(r"[A-Z][a-z]|[^\W\d_]{2,} [^\W\d_]{2,}")
# Text for scripts is in data attributes of many names, next to values that are not text.
SENTENCE = re.compile(r"[^\W\d_]{2,} [^\W\d_]{2,}")


def find_unmarked_text(source: str) -> list[str]:
    """Unmarked text with its line numbers."""
    finder = _Finder()
    finder.feed(_without_marks(source))
    finder.close()
    return finder.found


def find_lost_variables(source: str) -> list[str]:
    """Find variables that blocktranslate would drop: it resolves only plain names."""
    is_inside = False
    found = []
    for token in Lexer(source).tokenize():
        if token.contents.startswith(("blocktranslate", "endblocktranslate")):
            is_inside = token.contents.startswith("block")
        elif is_inside and token.token_type == TokenType.VAR and not token.contents.isidentifier():
            found.append(f"line {token.lineno}: {token.contents}")
    return found


def find_lost_messages(source: str) -> list[str]:
    """Find messages of a Jinja2 template that makemessages does not find.

    It reads the template as one of Django's: `_("text")` with one literal, in a block or first in a variable.
    """
    extracted = {ast.literal_eval(literal) for literal in TEMPLATIZED.findall(templatize(source))}
    used = extract_from_ast(Environment(autoescape=True).parse(source), GETTEXT_FUNCTIONS)
    return [f"line {line}: {message}" for line, _name, message in used if message not in extracted]


def find_jinja_literals(source: str) -> list[str]:
    """Find literals of a Jinja2 template that look like text for users and are not marked."""
    tree = Environment(autoescape=True).parse(source)
    marked = {id(literal) for call in tree.find_all(nodes.Call) if _is_mark(call) for literal in call.args}
    return [
        f"line {literal.lineno}: {literal.value}"
        for literal in tree.find_all(nodes.Const)
        if id(literal) not in marked and JINJA_TEXT.search(str(literal.value))
    ]


def _is_mark(call: nodes.Call) -> bool:
    return isinstance(call.node, nodes.Name) and call.node.name == "_"


def _without_marks(source: str) -> str:
    """The template as HTML; template tags are replaced by the unmarked text they would show."""
    return "".join(_pieces(source))


def _pieces(source: str) -> Iterator[str]:
    until = ""
    for token in Lexer(source).tokenize():
        name = token.contents.split(" ", 1)[0] if token.token_type == TokenType.BLOCK else ""
        if until:
            until = "" if name == until else until
            yield "\n" * token.contents.count("\n")
        elif name in SILENT_BLOCKS or LOOK_BLOCK.fullmatch(token.contents):
            until = f"end{name}"
        else:
            yield _text_of(token, name)


def _text_of(token: Token, name: str) -> str:
    if token.token_type == TokenType.TEXT:
        return token.contents
    if token.token_type == TokenType.COMMENT or name in {"translate", "trans"}:
        return ""
    contents = MARKED.sub("_", token.contents)
    # The default of an icon is the name of another icon.
    texts = [match["value"][1:-1] for match in FALLBACK.finditer(contents) if name != "icon"]
    if "|pluralize" in contents:
        texts.append("pluralize")
    if token.token_type == TokenType.BLOCK:
        texts += _human_arguments(name, contents)
    return " ".join(texts)


def _human_arguments(tag: str, contents: str) -> Iterator[str]:
    for place, argument in enumerate(ARGUMENT.finditer(contents)):
        if argument["value"] is None:
            continue
        if argument["name"] in HUMAN_ARGUMENTS or (not argument["name"] and place == HUMAN_PLACES.get(tag)):
            yield argument["value"][1:-1]


def _is_for_people(attribute: str, value: str) -> bool:
    if attribute in HUMAN_ATTRIBUTES:
        return True
    may_be_text = attribute.startswith("data-") and attribute not in MACHINE_ATTRIBUTES
    return may_be_text and SENTENCE.search(value) is not None


class _Finder(HTMLParser):
    """Collects the text of the HTML that is shown to users."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._open_machines: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if _is_for_people(name, value or ""):
                self._note(value or "")
        is_machine = tag in MACHINE_ELEMENTS or MACHINE_CLASS in (dict(attrs).get("class") or "").split()
        if tag not in VOID_ELEMENTS and (is_machine or tag in self._open_machines):
            self._open_machines.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open_machines and self._open_machines[-1] == tag:
            self._open_machines.pop()

    def handle_data(self, data: str) -> None:
        if not self._open_machines:
            self._note(data)

    def _note(self, text: str) -> None:
        texts = [word for word in WORD.findall(text) if word not in SAME_EVERYWHERE]
        if texts:
            self.found.append(f"line {self.getpos()[0]}: {' '.join(text.split())}")
