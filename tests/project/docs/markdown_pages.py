"""Parse the documentation as GitHub renders it: links, headings with their anchors, and commands."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.project.deployment.production_settings import ROOT

ALONE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
PAGES = (
    *(ROOT / name for name in ALONE),
    ROOT / "frontend" / "README.md",
    ROOT / "tests" / "README.md",
    ROOT / "clients" / "python" / "README.md",
    ROOT / "clients" / "typescript" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)
SHELLS = {"sh", "bash", "shell", "console"}


@dataclass(frozen=True)
class CommandLine:
    """A command line of the documentation, with its file and line."""

    place: str
    text: str

    @property
    def file(self) -> str:
        return self.place.partition(":")[0]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name


@cache
def tokens_of(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def inlines(page: Path) -> Iterator[tuple[int, Token]]:
    """Yield the inline tokens of paragraphs, headings and cells, with their lines."""
    for block in tokens_of(page):
        line = (block.map or [0])[0] + 1
        for piece in block.children or ():
            yield line, piece
            line += piece.type in {"softbreak", "hardbreak"}


# --- links ---------------------------------------------------------------------------------------------


def anchor(heading: str) -> str:
    """Return the anchor as GitHub builds it: lower case, no punctuation, hyphens for spaces."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page; repeated headings are numbered."""
    blocks = tokens_of(page)
    titles = [blocks[at + 1] for at, block in enumerate(blocks) if block.type == "heading_open"]
    counts: Counter[str] = Counter()
    names = set()
    for title in titles:
        name = anchor("".join(piece.content for piece in title.children or ()))
        names.add(f"{name}-{counts[name]}" if counts[name] else name)
        counts[name] += 1
    return names


def links(page: Path) -> list[tuple[int, str]]:
    """Return line and target of each link and picture of the page."""
    attributes = {"link_open": "href", "image": "src"}
    return [
        (line, str(piece.attrs[attributes[piece.type]]))
        for line, piece in inlines(page)
        if piece.type in attributes
    ]


def dead_links(page: Path) -> list[str]:
    return [
        f"{name_of(page)}:{line}: {target}: {why}"
        for line, target in links(page)
        if (why := fault(page, target))
    ]


def fault(page: Path, target: str) -> str:
    """Return why a link is dead, or an empty string; external links are not checked."""
    if re.match(r"[a-z]+:", target):
        return ""
    path, _, place = unquote(target).partition("#")
    aim = (page.parent / path).resolve() if path else page
    if not aim.exists():
        return "there is no such file"
    if place and place not in anchors(aim):
        return "there is no such heading"
    return ""


# --- commands ------------------------------------------------------------------------------------------


def shell_lines(page: Path) -> list[CommandLine]:
    """Return the commands of the shell blocks; lines that end with a backslash are joined."""
    commands = []
    for block in tokens_of(page):
        if block.type == "fence" and block.info.strip() in SHELLS and block.map:
            commands += split_commands(block.content, f"{name_of(page)}:", block.map[0] + 2)
    return commands


def split_commands(text: str, file: str, first: int) -> list[CommandLine]:
    commands, command, at = [], "", first
    for number, line in enumerate(text.splitlines(), first):
        at = at if command else number
        command += line.removesuffix("\\")
        if not line.endswith("\\"):
            if command.strip() and not command.lstrip().startswith("#"):
                commands.append(CommandLine(f"{file}{at}", command.strip()))
            command = ""
    return commands


def named_in_passing(page: Path) -> list[CommandLine]:
    """Return our commands in inline code."""
    ours = re.compile(
        r"([A-Z_]+=\S+ )*((\.venv/bin/)?python3? )?(manage|dev)\.py \w|docker compose |make \w|npm "
    )
    return [
        CommandLine(f"{name_of(page)}:{line}", piece.content)
        for line, piece in inlines(page)
        if piece.type == "code_inline" and ours.match(piece.content)
    ]
