"""Cases with unusual links and file types, each with the expected refusal or file."""

import os
import stat

from skills.discovery.harnesses import CLAUDE_CODE
from skills.discovery.search import MAX_REPORTED_LINKS
from tests.skills.discovery.discovery_stage import Case, Stage

SKILL = ".agents/skills/good/SKILL.md"


def chain(stage: Stage, length: int, end: str) -> None:
    """AGENTS.md as a chain of this many links, the last one to `end`."""
    names = ["AGENTS.md", *(f"link{at}" for at in range(1, length))]
    for name, target in zip(names, [*names[1:], end], strict=True):
        stage.link(name, target)


def loop(stage: Stage) -> None:
    stage.link("AGENTS.md", "other.md")
    stage.link("other.md", "AGENTS.md")


def twin(stage: Stage) -> None:
    """A folder whose name starts with the name of the root."""
    (stage.top / "inside-evil").mkdir()
    (stage.top / "inside-evil" / "AGENTS.md").write_bytes(b"SECRET")
    stage.link("AGENTS.md", stage.top / "inside-evil" / "AGENTS.md")


def inside_link(target: str):
    def build(stage: Stage) -> None:
        stage.write("real.md", "docs/real.md")
        stage.link("AGENTS.md", target.replace("INSIDE", str(stage.inside)))

    return build


def linked_folder(stage: Stage) -> None:
    stage.write("shared/AGENTS.md", "shared/skills/good/SKILL.md")
    stage.link(".agents", "shared")


def link_up(stage: Stage) -> None:
    """A link to a parent folder, which makes the tree infinite if links are followed."""
    stage.write("AGENTS.md", "sub/AGENTS.md")
    stage.link("sub/.agents", "..")


def hard_link(stage: Stage) -> None:
    os.link(stage.write("a").inside / "a", stage.path("AGENTS.md"))


def many_links(stage: Stage) -> None:
    stage.write("docs/AGENTS.md")
    for at in range(MAX_REPORTED_LINKS + 3):
        stage.link(f"link{at:03}", "docs")


def to(target: str):
    return lambda stage: stage.link("AGENTS.md", target.replace("OUTSIDE", str(stage.outside)))


def device(kind: int):
    """A device. Only root can create one; otherwise a link to a real device is used."""

    def build(stage: Stage) -> None:
        if os.getuid() == 0:
            os.mknod(stage.path("AGENTS.md"), kind | 0o666, os.makedev(1, 3))
        else:
            stage.link("AGENTS.md", "/dev/null")

    return build


DEVICE = {"AGENTS.md": "device" if os.getuid() == 0 else "link-out"}
OUT, LOOP, NOTHING = {"AGENTS.md": "link-out"}, {"AGENTS.md": "link-loop"}, {"AGENTS.md": "link-dangling"}
FOUND = ("AGENTS.md",)

LINKS = [
    Case("link out, absolute", to("OUTSIDE/secret.md"), OUT),
    Case("link out, relative", to("../outside/secret.md"), OUT),
    Case("link out with many ..", to("../" * 30 + "etc/passwd"), OUT),
    Case("link to the passwords", to("/etc/passwd"), OUT),
    Case("link to a device", to("/dev/null"), OUT),
    Case("link to the process's own environment", to("/proc/self/environ"), OUT),
    Case("link to the root of all", to("/"), OUT),
    Case("link to a twin of the root", twin, OUT),
    Case("link out through the root's own name", inside_link("INSIDE/../outside/secret.md"), OUT),
    Case("link out and in again", inside_link("../inside/real.md"), OUT),
    Case("link chain that ends outside", lambda stage: chain(stage, 3, "../outside/secret.md"), OUT),
    Case("link to itself", to("AGENTS.md"), LOOP),
    Case("two links in a circle", loop, LOOP),
    Case("one link too many", lambda s: chain(s.write("end"), 41, "end"), LOOP),
    Case("as many links as allowed", lambda s: chain(s.write("end"), 40, "end"), expected=FOUND),
    Case("short chain inside", lambda s: chain(s.write("end"), 3, "end"), expected=FOUND),
    Case("link inside, relative", inside_link("docs/real.md"), expected=FOUND),
    Case("link inside, with ..", inside_link("docs/../real.md"), expected=FOUND),
    Case("link inside, absolute", inside_link("INSIDE/docs/real.md"), expected=FOUND),
    Case("link to nothing", to("nowhere.md"), NOTHING),
    Case("link below a file", inside_link("real.md/more"), NOTHING),
    Case("link with a slash after a file", inside_link("real.md/"), NOTHING),
    Case("link to a name too long", to("x" * 300), NOTHING),
    Case("link to a folder", inside_link("docs"), {"AGENTS.md": "folder"}),
    Case("link to the root", to("."), {"AGENTS.md": "folder"}),
    Case("link to a pipe", lambda s: s.fifo("pipe").link("AGENTS.md", "pipe"), {"AGENTS.md": "pipe"}),
    Case("hard link", hard_link, {"AGENTS.md": "hard-link"}),
    Case("hard link in a source that allows them", hard_link, expected=FOUND, allow_hard_links=True),
    Case(
        "hard link of a skill to a file outside",
        lambda s: os.link(s.outside / "SKILL.md", s.path(SKILL)),
        {SKILL: "hard-link"},
    ),
    Case(
        "linked folder inside",
        linked_folder,
        expected=(".agents/AGENTS.md", SKILL, "shared/AGENTS.md"),
        ways=("tree",),
    ),
    Case("linked folder inside, upwards", linked_folder, expected=(".agents/AGENTS.md", SKILL), ways=("up",)),
    Case("linked folder outside", lambda s: s.link(".agents", s.outside), {".agents": "link-out"}),
    Case("linked folder in a circle", lambda s: s.link(".agents", ".agents"), {".agents": "link-loop"}),
    Case("linked folder to nothing", lambda s: s.link(".agents", "gone"), {".agents": "link-dangling"}),
    Case(
        "folder linked to its parent",
        link_up,
        ways=("tree",),
        expected=("AGENTS.md", "sub/AGENTS.md", "sub/.agents/AGENTS.md", "sub/.agents/OPAL.md"),
    ),
    Case(
        "other folder linked out",
        lambda s: s.link("docs", s.outside),
        notes={"docs": "link-out"},
        ways=("tree",),
    ),
    Case(
        "other folder linked inside",
        lambda s: s.write("docs/AGENTS.md").link("more", "docs"),
        expected=("docs/AGENTS.md",),
        notes={"more": "link-folder"},
        ways=("tree",),
    ),
    Case(
        "other folder linked to its parent",
        lambda s: s.write("sub/AGENTS.md").link("sub/more", ".."),
        expected=("sub/AGENTS.md",),
        notes={"sub/more": "link-loop"},
        ways=("tree",),
    ),
    Case(
        "other links in a circle",
        lambda s: s.link("a", "b").link("b", "a"),
        notes={"a": "link-loop", "b": "link-loop"},
        ways=("tree",),
    ),
    Case(
        "other link to nothing",
        lambda s: s.link("docs", "gone"),
        notes={"docs": "link-dangling"},
        ways=("tree",),
    ),
    Case(
        "link to a file that no rule names",
        lambda s: s.write("a.md").link("b.md", "a.md"),
        notes={},
        ways=("tree",),
    ),
    Case(
        "link with the name of a skipped folder",
        lambda s: s.link("node_modules", s.outside),
        notes={},
        ways=("tree",),
    ),
    Case(
        "more links than are reported",
        many_links,
        expected=("docs/AGENTS.md",),
        notes={".": "links"} | {f"link{at:03}": "link-folder" for at in range(MAX_REPORTED_LINKS)},
        ways=("tree",),
    ),
    Case(
        "skill linked out",
        lambda s: s.write(SKILL).link(".agents/skills/bad", s.outside),
        {".agents/skills/bad": "link-out"},
        (SKILL,),
    ),
    Case(
        "skill linked inside",
        lambda s: s.write("lib/SKILL.md").link(".agents/skills/good", "../../lib"),
        expected=(SKILL,),
    ),
    Case("skill file linked out", lambda s: s.link(SKILL, s.outside / "SKILL.md"), {SKILL: "link-out"}),
    Case(
        "readme linked among skills",
        lambda s: s.write(SKILL, "a.md").link(".agents/skills/a", "../../a.md"),
        expected=(SKILL,),
    ),
]

KINDS = [
    Case("pipe", lambda s: s.fifo("AGENTS.md"), {"AGENTS.md": "pipe"}),
    Case("pipe for a skill", lambda s: s.fifo(SKILL), {SKILL: "pipe"}),
    Case("socket", lambda s: s.socket("AGENTS.md"), {"AGENTS.md": "socket"}),
    Case("character device", device(stat.S_IFCHR), DEVICE),
    Case("block device", device(stat.S_IFBLK), DEVICE),
    Case("folder named like a file", lambda s: s.write("AGENTS.md/x"), {"AGENTS.md": "folder"}),
    Case("folder named like a skill's file", lambda s: s.write(f"{SKILL}/x"), {SKILL: "folder"}),
    Case(
        "folder among rules",
        lambda s: s.write(".claude/rules/a.md/x", ".claude/rules/b.md"),
        {".claude/rules/a.md": "folder"},
        (".claude/rules/b.md",),
        CLAUDE_CODE,
        neighbour=(),
    ),
    Case("pipe for a folder", lambda s: s.fifo(".agents")),
    Case("file for a folder", lambda s: s.write(".agents", ".opal")),
]
