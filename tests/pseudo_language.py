"""Pseudo-translation: finds text on pages that is not marked for translation.

Marked text is rendered in brackets, so text outside brackets is not marked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from gettext import NullTranslations
from html.parser import HTMLParser
from typing import cast

from django.utils import translation
from django.utils.translation import trans_real

from tests.untranslated_templates import MACHINE_CLASS, MACHINE_ELEMENTS, VOID_ELEMENTS

CODE, OPEN, CLOSE = "xx", "⟦", "⟧"
# The separator between a message context and its message in gettext.
CONTEXT = "\x04"
WORD = re.compile(r"[A-Za-z]{2,}")
# Digests and file names.
MACHINE_WORD = re.compile(r"\b[0-9a-f]{12,}\b|[\w./*]+\.md\b")
# Prompt text is in the language of its authors.
PROMPT_CLASSES = {MACHINE_CLASS, "dr-seg", "dr-stretch", "dr-slot"}
LAYOUTS = {"dramatis", "opal", "pi", "moltis", "nova", "ptc"}
HARNESSES = {"openclaw", "claude", "code", "plain"}
LABELS = {"latest", "production"}
SAME_EVERYWHERE = (
    LAYOUTS
    | HARNESSES
    | LABELS
    | {
        "api",
        "csv",
        "ctrl",
        "dramatis",
        "esc",
        "json",
        "kib",
        "markdown",
        "md",
        "utc",
        "yaml",
    }
)
HUMAN_ATTRIBUTES = {"alt", "aria-label", "data-confirm", "data-label", "placeholder", "title"}


class Brackets(NullTranslations):
    """A message catalogue that returns every text in brackets."""

    def gettext(self, message: str) -> str:
        return f"{OPEN}{message.rpartition(CONTEXT)[2]}{CLOSE}" if message.strip() else message

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)

    def to_language(self) -> str:
        return CODE


@contextmanager
def in_brackets() -> Iterator[None]:
    catalogues = cast("dict[str, object]", trans_real._translations)  # type: ignore[attr-defined]
    catalogues[CODE] = Brackets()
    try:
        with translation.override(CODE):
            yield
    finally:
        del catalogues[CODE]


def english_left(html: str, names: Collection[str]) -> list[str]:
    """List the text outside brackets on a page, except for the given names."""
    reader = _BracketReader({name.lower() for name in names} | SAME_EVERYWHERE)
    reader.feed(html)
    reader.close()
    return reader.unmarked


class _BracketReader(HTMLParser):
    """Collects the text of a page outside brackets."""

    def __init__(self, known: set[str]) -> None:
        super().__init__()
        self.unmarked: list[str] = []
        self._known = known
        self._depth = 0
        # For each open element: its tag, whether its text is not translated, and the bracket depth at its
        # start.
        self._open: list[tuple[str, bool, int]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in HUMAN_ATTRIBUTES and not self._depth:
                self._check(value or "", 0)
        classes = set((dict(attrs).get("class") or "").split())
        is_machine = tag in MACHINE_ELEMENTS or bool(PROMPT_CLASSES & classes) or self._in_machine
        if tag not in VOID_ELEMENTS:
            self._open.append((tag, is_machine, self._depth))

    def handle_endtag(self, tag: str) -> None:
        if tag not in [name for name, _, _ in self._open]:
            return
        while self._open:
            name, _, depth = self._open.pop()
            if name == tag:
                # Truncated text has lost its closing bracket.
                self._depth = min(self._depth, depth)
                return

    def handle_data(self, data: str) -> None:
        if not self._in_machine:
            self._depth = self._check(data, self._depth)

    @property
    def _in_machine(self) -> bool:
        return bool(self._open) and self._open[-1][1]

    def _check(self, text: str, depth: int) -> int:
        outside = []
        for character in text:
            depth += (character == OPEN) - (character == CLOSE)
            outside.append(character if depth <= 0 else " ")
            depth = max(depth, 0)
        outside_text = MACHINE_WORD.sub("", "".join(outside))
        english = [word for word in WORD.findall(outside_text) if word.lower() not in self._known]
        if english:
            self.unmarked.append(
                f"line {self.getpos()[0]}: {' '.join(english)} (in “{' '.join(text.split())[:80]}”)"
            )
        return depth
