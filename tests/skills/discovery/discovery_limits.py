"""Cases with unusual sizes, names, numbers and permissions, each with the expected refusal."""

import os
from itertools import count

from skills.discovery.harnesses import CLAUDE_CODE, DiscoveryCaps
from tests.skills.discovery.discovery_links import SKILL
from tests.skills.discovery.discovery_stage import Case, Stage

MOST = 256 * 1024
FOUND = ("AGENTS.md",)
UP, TREE = ("up",), ("tree",)


def writes(*names: str, text: str | bytes = "words"):
    return lambda stage: stage.write(*names, text=text)


def sparse(stage: Stage) -> None:
    stage.write("AGENTS.md")
    os.truncate(stage.inside / "AGENTS.md", 300 * 1024 * 1024)


def byte_name(name: bytes) -> str:
    return os.fsdecode(name)


def deep(levels: int) -> list[str]:
    return ["/".join(["d"] * level + ["AGENTS.md"]) for level in range(levels + 1)]


def slow_clock():
    """A clock that stands still for ten calls and then advances by a minute."""
    ticks = count()
    return lambda: 0.0 if next(ticks) < 10 else 60.0


SIZES = [
    Case("exactly as large as allowed", writes("AGENTS.md", text=b"x" * MOST), expected=FOUND),
    Case("one byte too large", writes("AGENTS.md", text=b"x" * (MOST + 1)), {"AGENTS.md": "size"}),
    Case("300 MB of nothing", sparse, {"AGENTS.md": "size"}),
    Case("empty file", writes("AGENTS.md", text=""), expected=FOUND),
    Case("byte order mark", writes("AGENTS.md", text="\ufeffwords"), expected=FOUND),
    Case("no text at all", writes("AGENTS.md", text=b"\0\xff\xfe"), expected=FOUND),
    Case(
        "all together too large",
        writes(".agents/AGENTS.md", "AGENTS.md", text=b"x" * 60),
        {".agents/AGENTS.md": "total"},
        FOUND,
        caps=DiscoveryCaps(total_bytes=100),
        ways=UP,
    ),
    Case(
        "a workspace's lower cap",
        writes("AGENTS.md", text="x" * 99),
        {"AGENTS.md": "size"},
        caps=DiscoveryCaps(file_bytes=50),
    ),
]

NAMES = [
    Case("line break in a folder's name", writes("a\nb/AGENTS.md"), {"a\\nb": "name"}, ways=TREE),
    Case(
        "line break in the working directory",
        writes("a\nb/AGENTS.md"),
        {".": "name"},
        working_directory="a\nb",
        ways=UP,
        neighbour=(),
    ),
    Case("bytes that are no text", writes(byte_name(b"bad\xff/AGENTS.md")), {"bad\\xff": "name"}, ways=TREE),
    Case(
        "escape sequence in a skill's folder",
        writes(".agents/skills/\x1b[31m/SKILL.md", SKILL),
        {".agents/skills/\\x1b[31m": "name"},
        (SKILL,),
        ways=TREE,
    ),
    Case(
        "escape sequence in a skill's folder, upwards",
        writes(".agents/skills/\x1b[31m/SKILL.md", SKILL),
        {".agents/skills/\\x1b[31m/SKILL.md": "name"},
        (SKILL,),
        ways=UP,
    ),
    Case(
        "text that runs backwards in a rule's name",
        writes(".claude/rules/\u202edm.md"),
        {".claude/rules/\\u202edm.md": "name"},
        harness=CLAUDE_CODE,
        neighbour=(),
    ),
    Case(
        "tag characters in a folder's name",
        writes("x\U000e0041/AGENTS.md"),
        {"x\\U000e0041": "name"},
        ways=TREE,
    ),
    Case("other letter cases", writes("agents.md", "Agents.md", "AGENTS.MD", ".Agents/AGENTS.md"), ways=UP),
    Case("other letter cases of a skill", writes(".agents/skills/good/skill.md")),
    Case("look-alike letters", writes("\u0410GENTS.md")),
    Case("space after the name", writes("AGENTS.md ", " AGENTS.md")),
    Case("editors' copies", writes("AGENTS.md~", ".AGENTS.md.swp", "#AGENTS.md#", "AGENTS.md.bak")),
    Case("hidden skill", writes(".agents/skills/.hidden/SKILL.md", SKILL), expected=(SKILL,)),
    Case(
        "hidden rule",
        writes(".claude/rules/.a.md", ".claude/rules/b.md"),
        expected=(".claude/rules/b.md",),
        harness=CLAUDE_CODE,
        neighbour=(),
    ),
    Case(
        "names a shell would take apart",
        writes(".agents/skills/[x] *?$(id)/SKILL.md"),
        expected=(".agents/skills/[x] *?$(id)/SKILL.md",),
    ),
    Case("backslashes", writes("a\\..\\b/AGENTS.md"), expected=("a\\..\\b/AGENTS.md",), ways=TREE),
    Case(
        "spaces and accents",
        writes("Größe mit Raum/AGENTS.md"),
        expected=("Größe mit Raum/AGENTS.md",),
        working_directory="Größe mit Raum",
    ),
    Case(
        "the longest name there is",
        writes(f".agents/skills/{'x' * 255}/SKILL.md"),
        expected=(f".agents/skills/{'x' * 255}/SKILL.md",),
    ),
    Case(
        "names that look like leaving",
        writes("...", "..a/AGENTS.md"),
        expected=("..a/AGENTS.md",),
        working_directory="..a",
    ),
]

NUMBERS = [
    Case(
        "same skill twice",
        writes(SKILL, ".github/skills/good/SKILL.md"),
        expected=(SKILL, ".github/skills/good/SKILL.md"),
    ),
    Case(
        "skill folder with nothing in it", writes(".agents/skills/empty/notes.md", SKILL), expected=(SKILL,)
    ),
    Case("skill too far down", writes(".agents/skills/a/b/SKILL.md")),
    Case("skill file beside the skills", writes(".agents/skills/SKILL.md")),
    Case(
        "2,100 skills",
        writes(*(f".agents/skills/s{at:04}/SKILL.md" for at in range(2100))),
        {".agents/skills": "folder-files"},
        tuple(f".agents/skills/s{at:04}/SKILL.md" for at in range(1000)),
        ways=TREE,
    ),
    Case(
        "a folder with too many files beside others",
        writes(*(f"a/.claude/rules/{at}.md" for at in range(20, 50)), "b/CLAUDE.md", "z/.claude/rules/1.md"),
        {"a/.claude/rules": "folder-files"},
        (*(f"a/.claude/rules/{at}.md" for at in range(20, 30)), "b/CLAUDE.md", "z/.claude/rules/1.md"),
        harness=CLAUDE_CODE,
        caps=DiscoveryCaps(folder_files=10),
        ways=TREE,
        neighbour=(),
    ),
    Case(
        "many folders share the limit",
        writes(*(f"a/{at}/AGENTS.md" for at in range(20, 50)), "b/AGENTS.md", "c/d/AGENTS.md"),
        {".": "files"},
        (*(f"a/{at}/AGENTS.md" for at in range(20, 27)), "b/AGENTS.md", "c/d/AGENTS.md"),
        caps=DiscoveryCaps(files=10),
        ways=TREE,
    ),
    Case(
        "more skills than allowed",
        writes(*(f".agents/skills/{at}/SKILL.md" for at in range(10, 30))),
        {".": "files"},
        tuple(f".agents/skills/{at}/SKILL.md" for at in range(10, 19)),
        caps=DiscoveryCaps(files=10),
    ),
    Case(
        "more bad skills than allowed",
        lambda s: [s.fifo(f".agents/skills/{at}/SKILL.md") for at in range(10, 30)],
        {".": "files"} | {f".agents/skills/{at}/SKILL.md": "pipe" for at in range(10, 14)},
        caps=DiscoveryCaps(files=5),
    ),
    Case("30 levels", writes(*deep(30)), {"/".join(["d"] * 21): "depth"}, tuple(deep(20)), ways=TREE),
    Case(
        "30 levels, upwards",
        writes(*deep(30)),
        {"/".join(["d"] * 30): "depth"},
        tuple(deep(20)),
        working_directory="/".join(["d"] * 30),
        ways=UP,
    ),
    Case(
        "skill of the deepest folder",
        writes("/".join(["d"] * 20 + [SKILL])),
        expected=("/".join(["d"] * 20 + [SKILL]),),
        working_directory="/".join(["d"] * 20),
    ),
    Case(
        "a link into the depths",
        lambda s: s.write("d/" * 70 + "x").link("AGENTS.md", "d/" * 70 + "x"),
        {"AGENTS.md": "depth"},
        ways=UP,
    ),
    Case(
        "too many names",
        writes(*(f"a/{at}" for at in range(60)), "b/AGENTS.md"),
        {".": "entries"},
        caps=DiscoveryCaps(entries=50),
        ways=TREE,
    ),
    Case(
        "too many names among skills",
        writes(*(f".agents/skills/{at}" for at in range(60))),
        {".": "entries"},
        caps=DiscoveryCaps(entries=50),
        ways=UP,
    ),
    Case(
        "a crowded folder",
        writes(
            *(f"a/{at}" for at in range(60)),
            "a/AGENTS.md",
            "a/.agents/AGENTS.md",
            "a/x/AGENTS.md",
            "b/AGENTS.md",
        ),
        {"a": "folder-entries"},
        ("a/AGENTS.md", "a/.agents/AGENTS.md", "b/AGENTS.md"),
        caps=DiscoveryCaps(folder_entries=50),
        ways=TREE,
    ),
    Case(
        "a crowded root",
        writes(*(f"{at}" for at in range(60)), "AGENTS.md", "b/AGENTS.md", SKILL),
        {".": "folder-entries"},
        ("AGENTS.md", SKILL),
        caps=DiscoveryCaps(folder_entries=50),
        ways=TREE,
    ),
    Case(
        "crowded folders of more names than allowed in all",
        writes(*(f"{folder}/{at}" for folder in "abc" for at in range(60)), "d/AGENTS.md"),
        {"a": "folder-entries", "b": "folder-entries", "c": "folder-entries"},
        ("d/AGENTS.md",),
        caps=DiscoveryCaps(folder_entries=50, entries=100),
        ways=TREE,
    ),
    Case(
        "a crowded folder of skills",
        writes(SKILL, *(f".agents/skills/{at}" for at in range(60)), ".github/skills/good/SKILL.md"),
        {".agents/skills": "folder-entries"},
        (".github/skills/good/SKILL.md",),
        caps=DiscoveryCaps(folder_entries=50),
    ),
    Case(
        "out of time",
        writes(*(f"{at}/AGENTS.md" for at in range(30))),
        {".": "time"},
        ("0/AGENTS.md", "1/AGENTS.md", "10/AGENTS.md"),
        clock=slow_clock,
        ways=TREE,
    ),
    Case(
        "out of time, upwards",
        writes(*(f".agents/skills/{at}/SKILL.md" for at in range(10, 30))),
        {".": "time"},
        (".agents/skills/10/SKILL.md",),
        clock=slow_clock,
        ways=UP,
    ),
    Case("folders nobody wants", writes("node_modules/x/AGENTS.md", ".git/AGENTS.md"), ways=TREE),
]


def mode(name: str, bits: int):
    def build(stage: Stage) -> None:
        stage.write("AGENTS.md", "sub/AGENTS.md", SKILL)
        os.chmod(stage.inside / name, bits)

    return build


PERMISSIONS = [
    Case(
        "unreadable file",
        mode("AGENTS.md", 0),
        {"AGENTS.md": "unreadable"},
        ("sub/AGENTS.md", SKILL),
        working_directory="sub",
        ways=TREE,
        is_nobody=True,
    ),
    Case(
        "unreadable file, upwards",
        mode("AGENTS.md", 0),
        {"AGENTS.md": "unreadable"},
        (SKILL,),
        ways=UP,
        is_nobody=True,
    ),
    Case(
        "unreadable folder",
        mode("sub", 0),
        {"sub": "unreadable"},
        ("AGENTS.md", SKILL),
        ways=TREE,
        is_nobody=True,
    ),
    Case(
        "unreadable working directory",
        mode("sub", 0),
        {"sub": "unreadable"},
        ("AGENTS.md", SKILL),
        working_directory="sub",
        ways=UP,
        is_nobody=True,
    ),
    Case(
        "folder that lists but opens nothing",
        mode("sub", 0o444),
        {"sub/AGENTS.md": "unreadable"},
        ("AGENTS.md", SKILL),
        ways=TREE,
        is_nobody=True,
    ),
    Case(
        "unreadable skills",
        mode(".agents/skills", 0),
        {".agents/skills": "unreadable"},
        ("AGENTS.md",),
        ways=UP,
        is_nobody=True,
    ),
    Case("unreadable source", mode(".", 0), {".": "source"}, is_nobody=True, neighbour=()),
]
