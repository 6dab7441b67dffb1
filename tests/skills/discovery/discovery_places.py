"""Cases with unusual working directories and source folders, and files that change during the search."""

import os

from skills.discovery.harnesses import OPENCLAW
from tests.skills.discovery.discovery_links import SKILL
from tests.skills.discovery.discovery_stage import Case, Stage

FOUND = ("AGENTS.md",)
UP, TREE = ("up",), ("tree",)


def workplace(stage: Stage) -> None:
    stage.write("AGENTS.md", "a/AGENTS.md", "a/b/AGENTS.md", "real/AGENTS.md", "a/file")
    stage.link("inner", "real")
    stage.link("outer", "../outside")
    (stage.top / "inside-evil").mkdir()


def case_at(
    name: str, working_directory: str, refused: dict[str, str], *expected: str, neighbour=("OPAL.md",)
) -> Case:
    return Case(
        name, workplace, refused, expected, working_directory=working_directory, ways=UP, neighbour=neighbour
    )


PARENTS = ("AGENTS.md", "a/AGENTS.md")
WORKING_DIRECTORIES = [
    case_at("working directory below", "a/b", {}, *PARENTS, "a/b/AGENTS.md"),
    case_at("working directory with odd slashes", "./a//b/", {}, *PARENTS, "a/b/AGENTS.md"),
    case_at("working directory by its full path", "INSIDE/a", {}, *PARENTS),
    case_at("the root by its full path", "INSIDE", {}, "AGENTS.md"),
    case_at("working directory with ..", "a/../../outside", {".": "path"}, neighbour=()),
    case_at("working directory with harmless ..", "a/../a", {".": "path"}, neighbour=()),
    case_at("working directory elsewhere", "OUTSIDE", {".": "outside"}, neighbour=()),
    case_at("working directory in a twin of the root", "INSIDE-evil", {".": "outside"}, neighbour=()),
    case_at("working directory in a user's home", "~/x", {"~/x": "missing"}, "AGENTS.md"),
    case_at("working directory with a null", "a\0b", {".": "name"}, neighbour=()),
    case_at("working directory that is a file", "a/file", {"a/file": "not-folder"}, *PARENTS),
    case_at("working directory below a file", "a/file/x", {"a/file/x": "missing"}, *PARENTS),
    case_at(
        "working directory that is missing", "a/b/gone", {"a/b/gone": "missing"}, *PARENTS, "a/b/AGENTS.md"
    ),
    case_at("working directory linked inside", "inner", {}, "AGENTS.md", "real/AGENTS.md"),
    case_at("working directory linked out", "outer", {"outer": "link-out"}, "AGENTS.md"),
    Case(
        "no persona of the parents",
        lambda s: s.write("SOUL.md", "sub/USER.md", "sub/x"),
        {"sub/gone": "missing"},
        harness=OPENCLAW,
        working_directory="sub/gone",
        ways=UP,
        neighbour=(),
    ),
]


def chosen(name: str, folder: str, refused: dict[str, str], *expected: str) -> Case:
    return Case(name, workplace, refused, expected, folder=folder, neighbour=())


FOLDERS = [
    chosen("a folder of the tenant's", "a/b", {}, "AGENTS.md"),
    chosen("a tenant's folder that is a link out", "outer", {".": "replaced"}),
    chosen("a tenant's folder that is a link inside", "inner", {".": "replaced"}),
    chosen("a tenant's folder with ..", "../outside", {".": "path"}),
    chosen("a tenant's folder that is a file", "a/file", {".": "replaced"}),
    chosen("a tenant's folder that is missing", "gone", {".": "vanished"}),
]


def before_open(name: str, action):
    """Change AGENTS.md just before it is opened."""

    def build(stage: Stage) -> None:
        stage.write("AGENTS.md", "sub/AGENTS.md")
        stage.before_open[name] = stage.swap(name, action(stage))

    return build


def during_read(action):
    def build(stage: Stage) -> None:
        os.remove(stage.inside / "OPAL.md")
        stage.write("AGENTS.md", text="some words")
        stage.during_read.append(lambda: action(stage.inside / "AGENTS.md"))

    return build


def grow(path) -> None:
    with path.open("a") as file:
        file.write("more")


def rewrite(path) -> None:
    path.write_text("SOME WORDS")
    os.utime(path, ns=(1, 1))


def foreign(name: str):
    def build(stage: Stage) -> None:
        stage.write("AGENTS.md", "sub/AGENTS.md", SKILL)
        stage.foreign.add((stage.inside / name).stat().st_ino)

    return build


CHANGING = {"AGENTS.md": "changing"}
RACES = [
    Case(
        "becomes a link before it is opened",
        before_open("AGENTS.md", lambda s: lambda path: path.symlink_to(s.outside / "secret.md")),
        {"AGENTS.md": "replaced"},
        ways=UP,
    ),
    Case(
        "becomes a pipe before it is opened",
        before_open("AGENTS.md", lambda s: os.mkfifo),
        {"AGENTS.md": "pipe"},
        ways=UP,
    ),
    Case(
        "becomes a folder before it is opened",
        before_open("AGENTS.md", lambda s: lambda path: path.mkdir()),
        {"AGENTS.md": "folder"},
        ways=UP,
    ),
    Case(
        "vanishes before it is opened",
        before_open("AGENTS.md", lambda s: lambda path: None),
        {"AGENTS.md": "vanished"},
        ways=UP,
    ),
    Case(
        "folder becomes a link before it is opened",
        before_open("sub", lambda s: lambda path: path.symlink_to(s.outside)),
        {"sub": "replaced"},
        FOUND,
        ways=TREE,
    ),
    Case(
        "working directory becomes a link before it is opened",
        before_open("sub", lambda s: lambda path: path.symlink_to(s.outside)),
        {"sub": "replaced"},
        FOUND,
        working_directory="sub",
        ways=UP,
    ),
    Case(
        "folder vanishes before it is opened",
        before_open("sub", lambda s: lambda path: None),
        {"sub": "vanished"},
        FOUND,
        ways=TREE,
    ),
    Case("grows while it is read", during_read(grow), CHANGING, neighbour=()),
    Case("shrinks while it is read", during_read(lambda path: os.truncate(path, 3)), CHANGING, neighbour=()),
    Case("is rewritten while it is read", during_read(rewrite), CHANGING, neighbour=()),
    Case(
        "is replaced while it is read",
        during_read(lambda path: path.rename(path.parent / "b")),
        expected=FOUND,
        neighbour=(),
    ),
    Case(
        "file of another file system",
        foreign("AGENTS.md"),
        {"AGENTS.md": "mount"},
        ("sub/AGENTS.md", SKILL),
        ways=TREE,
    ),
    Case("folder of another file system", foreign("sub"), {"sub": "mount"}, ("AGENTS.md", SKILL), ways=TREE),
    Case(
        "working directory of another file system",
        foreign("sub"),
        {"sub": "mount"},
        ("AGENTS.md", SKILL),
        working_directory="sub",
        ways=UP,
    ),
    Case("skills of another file system", foreign(".agents"), {".agents": "mount"}, FOUND, ways=UP),
]
