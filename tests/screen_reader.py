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
    said: dict[str, str] = field(default_factory=dict)
    parent: Element | None = None
    holds: list[Element | str] = field(default_factory=list)

    def all(self, *tags: str) -> Iterator[Element]:
        for one in self.holds:
            if isinstance(one, Element):
                if not tags or one.tag in tags:
                    yield one
                yield from one.all(*tags)

    def within(self, *tags: str) -> Element | None:
        """The nearest ancestor with one of these tags."""
        place = self.parent
        while place is not None and place.tag not in tags:
            place = place.parent
        return place

    def words(self) -> str:
        """The accessible text, without hidden elements."""
        if self.said.get("aria-hidden") == "true" or self.tag in SILENT or "hidden" in self.said:
            return ""
        if label := self.said.get("aria-label"):
            return label
        pieces = (one if isinstance(one, str) else one.words() for one in self.holds)
        return " ".join(" ".join(pieces).split())


class Reader(HTMLParser):
    """Builds the element tree; the product's pages close their elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = self.place = Element("page")
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs}, self.place)
        self.place.holds.append(made)
        if tag not in VOID:
            self.place = made

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.place.holds.append(Element(tag, {name: value or "" for name, value in attrs}, self.place))

    def handle_endtag(self, tag: str) -> None:
        place: Element | None = self.place
        while place is not None and place.tag != tag:
            place = place.parent
        if place is not None and place.parent is not None:
            self.place = place.parent

    def handle_data(self, data: str) -> None:
        self.place.holds.append(data)


def troubles(html: str) -> list[str]:
    """List the accessibility problems of a page."""
    root = Reader(html).root
    main = next(root.all("main"), root)
    checks = (alike(main), nameless(main), headings(main), tables(main), stops(main), ids(root), focus(root))
    return [said for found in checks for said in found]


def alike(main: Element) -> Iterator[str]:
    """Find links or buttons with the same name and different targets."""
    places: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in main.all("a", "button"):
        if one.tag == "a" and "href" in one.said:
            places["link", one.words()].add(one.said["href"])
        elif one.tag == "button" and one.said.get("type") == "submit":
            form = one.within("form")
            action = one.said.get("formaction") or (form.said.get("action", "") if form else "")
            sent = hidden_values(form) if form else ""
            places["button", one.words()].add(f"{action} {one.said.get('value', '')} {sent}")
    for (kind, name), targets in places.items():
        if len(targets) > 1:
            yield f"{len(targets)} different {kind}s are called “{name}”: {sorted(targets)[:3]}"


def hidden_values(form: Element) -> str:
    """The hidden fields of a form, which may determine its target."""
    fields = [one.said for one in form.all("input") if one.said.get("type") == "hidden"]
    return " ".join(
        f"{one['name']}={one.get('value')}" for one in fields if "csrf" not in one.get("name", "csrf")
    )


def nameless(main: Element) -> Iterator[str]:
    labelled = {one.said["for"] for one in main.all("label") if "for" in one.said}
    for one in main.all("a", "button", "summary", *FIELDS):
        if one.said.get("type") == "hidden" or "hidden" in one.said:
            continue
        named = {"aria-label", "aria-labelledby"} & one.said.keys() or one.said.get("id") in labelled
        if one.tag in FIELDS and not named and one.within("label") is None:
            yield f"a field has no label: {one.said}"
        elif one.tag not in FIELDS and not named and not one.words():
            yield f"a {one.tag} has no name: {one.said}"


def headings(main: Element) -> Iterator[str]:
    found = list(main.all("h1", "h2", "h3", "h4"))
    if sum(one.tag == "h1" for one in found) != 1:
        yield "there is not exactly one h1"
    level = 1
    for one in found:
        now = int(one.tag[1])
        # An alert before the page's h1 may start with an h2.
        if now > max(level, 1) + 1:
            yield f"from h{level} to {one.tag}: {one.words()}"
        level = now


def tables(main: Element) -> Iterator[str]:
    for table in main.all("table"):
        if not list(table.all("caption")) and not {"aria-label", "aria-labelledby"} & table.said.keys():
            yield "a table has no caption"
        bare = [one.words() for one in table.all("th") if "scope" not in one.said]
        if bare:
            yield f"heads without a scope: {bare}"


def stops(main: Element) -> Iterator[str]:
    """Find focusable elements without an accessible name."""
    for one in main.all():
        if one.said.get("tabindex") == "0" and not ({"aria-label", "aria-labelledby"} & one.said.keys()):
            yield f"the Tab key stops at a {one.tag} without a name"


def ids(root: Element) -> Iterator[str]:
    known = [one.said["id"] for one in root.all() if "id" in one.said]
    for twice in sorted({one for one in known if known.count(one) > 1}):
        yield f"two elements have the id {twice}"
    for one in root.all():
        for name in POINTERS:
            for target in one.said.get(name, "").split():
                if target not in known and not LATER.match(target):
                    yield f"{one.tag} points by {name} at {target}, which is not there"


def focus(root: Element) -> Iterator[str]:
    if sum("autofocus" in one.said for one in root.all()) > 1:
        yield "two elements want the focus"
