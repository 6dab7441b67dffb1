"""Accessibility checks of a page: accessible names, headings, tables, ids and focus."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
SILENT = {"script", "style", "template"}
POINTERS = ("aria-describedby", "aria-labelledby", "aria-controls", "for")
FIELDS = {"input", "select", "textarea"}
# Created by scripts after the page has loaded.
LATER = re.compile(r"^dr-palette-")


@dataclass
class Element:
    """One element of a page with its attributes, text and child elements."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    parent: Element | None = None
    children: list[Element | str] = field(default_factory=list)

    def all(self, *tags: str) -> Iterator[Element]:
        for one in self.children:
            if isinstance(one, Element):
                if not tags or one.tag in tags:
                    yield one
                yield from one.all(*tags)

    def closest(self, *tags: str) -> Element | None:
        """The nearest ancestor with one of these tags."""
        current = self.parent
        while current is not None and current.tag not in tags:
            current = current.parent
        return current

    def text(self) -> str:
        """The accessible text, without hidden elements."""
        if self.attributes.get("aria-hidden") == "true" or self.tag in SILENT or "hidden" in self.attributes:
            return ""
        if label := self.attributes.get("aria-label"):
            return label
        parts = (one if isinstance(one, str) else one.text() for one in self.children)
        return " ".join(" ".join(parts).split())


class Reader(HTMLParser):
    """Builds the element tree; the product's pages close their elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = self.current = Element("page")
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, self.current)
        self.current.children.append(element)
        if tag not in VOID:
            self.current = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.current.children.append(Element(tag, {name: value or "" for name, value in attrs}, self.current))

    def handle_endtag(self, tag: str) -> None:
        current: Element | None = self.current
        while current is not None and current.tag != tag:
            current = current.parent
        if current is not None and current.parent is not None:
            self.current = current.parent

    def handle_data(self, data: str) -> None:
        self.current.children.append(data)


def find_problems(html: str) -> list[str]:
    """List the accessibility problems of a page."""
    root = Reader(html).root
    main = next(root.all("main"), root)
    checks = (
        find_ambiguous_names(main),
        find_unnamed_elements(main),
        check_headings(main),
        check_tables(main),
        check_tab_stops(main),
        check_ids(root),
        check_focus(root),
    )
    return [problem for problems in checks for problem in problems]


def find_ambiguous_names(main: Element) -> Iterator[str]:
    """Find links or buttons with the same name and different targets."""
    places: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in main.all("a", "button"):
        if one.tag == "a" and "href" in one.attributes:
            places["link", one.text()].add(one.attributes["href"])
        elif one.tag == "button" and one.attributes.get("type") == "submit":
            form = one.closest("form")
            action = one.attributes.get("formaction") or (form.attributes.get("action", "") if form else "")
            sent = hidden_values(form) if form else ""
            places["button", one.text()].add(f"{action} {one.attributes.get('value', '')} {sent}")
    for (kind, name), targets in places.items():
        if len(targets) > 1:
            yield f"{len(targets)} different {kind}s are called “{name}”: {sorted(targets)[:3]}"


def hidden_values(form: Element) -> str:
    """The hidden fields of a form, which may determine its target."""
    fields = [one.attributes for one in form.all("input") if one.attributes.get("type") == "hidden"]
    return " ".join(
        f"{one['name']}={one.get('value')}" for one in fields if "csrf" not in one.get("name", "csrf")
    )


def find_unnamed_elements(main: Element) -> Iterator[str]:
    labelled = {one.attributes["for"] for one in main.all("label") if "for" in one.attributes}
    for one in main.all("a", "button", "summary", *FIELDS):
        if one.attributes.get("type") == "hidden" or "hidden" in one.attributes:
            continue
        has_label = one.attributes.get("id") in labelled
        named = {"aria-label", "aria-labelledby"} & one.attributes.keys() or has_label
        if one.tag in FIELDS and not named and one.closest("label") is None:
            yield f"a field has no label: {one.attributes}"
        elif one.tag not in FIELDS and not named and not one.text():
            yield f"a {one.tag} has no name: {one.attributes}"


def check_headings(main: Element) -> Iterator[str]:
    headings = list(main.all("h1", "h2", "h3", "h4"))
    if sum(one.tag == "h1" for one in headings) != 1:
        yield "there is not exactly one h1"
    level = 1
    for one in headings:
        now = int(one.tag[1])
        # An alert before the page's h1 may start with an h2.
        if now > max(level, 1) + 1:
            yield f"from h{level} to {one.tag}: {one.text()}"
        level = now


def check_tables(main: Element) -> Iterator[str]:
    for table in main.all("table"):
        if not list(table.all("caption")) and not {"aria-label", "aria-labelledby"} & table.attributes.keys():
            yield "a table has no caption"
        unscoped = [one.text() for one in table.all("th") if "scope" not in one.attributes]
        if unscoped:
            yield f"heads without a scope: {unscoped}"


def check_tab_stops(main: Element) -> Iterator[str]:
    """Find focusable elements without an accessible name."""
    for one in main.all():
        if one.attributes.get("tabindex") == "0" and not (
            {"aria-label", "aria-labelledby"} & one.attributes.keys()
        ):
            yield f"the Tab key stops at a {one.tag} without a name"


def check_ids(root: Element) -> Iterator[str]:
    known = [one.attributes["id"] for one in root.all() if "id" in one.attributes]
    for twice in sorted({one for one in known if known.count(one) > 1}):
        yield f"two elements have the id {twice}"
    for one in root.all():
        for name in POINTERS:
            for target in one.attributes.get(name, "").split():
                if target not in known and not LATER.match(target):
                    yield f"{one.tag} points by {name} at {target}, which is not there"


def check_focus(root: Element) -> Iterator[str]:
    if sum("autofocus" in one.attributes for one in root.all()) > 1:
        yield "two elements want the focus"
