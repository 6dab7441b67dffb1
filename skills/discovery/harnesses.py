"""The discovery rules of each harness, as data that a workspace can override with its own copy."""

from dataclasses import dataclass, field, fields
from typing import Literal, get_args

FileKind = Literal["base", "append", "persona", "context", "workspace", "skill"]
# "each": every folder from the source's root down to the working directory. "project": only the working
# directory.
RuleScope = Literal["each", "project"]
MatchMode = Literal["all", "first"]
FILE_KINDS: tuple[FileKind, ...] = get_args(FileKind)
RULE_SCOPES: tuple[RuleScope, ...] = get_args(RuleScope)
MATCH_MODES: tuple[MatchMode, ...] = get_args(MatchMode)
# Prefix of paths below the home directory, which `Harness.global_folder` replaces.
HOME_PREFIX = "~/"


@dataclass(frozen=True)
class DiscoveryCaps:
    """Limits of one discovery. A workspace can lower them, not raise them.

    `files` limits the files that rules match, `folder_files` those in one folder, `folder_entries` the names
    in one folder, `entries` all names in the listed folders, and `depth` the folders below the root.
    """

    file_bytes: int = 256 * 1024
    total_bytes: int = 16 * 1024 * 1024
    files: int = 2_000
    folder_files: int = 1_000
    folder_entries: int = 10_000
    entries: int = 100_000
    depth: int = 20
    seconds: float = 20.0

    def lowest_with(self, other: "DiscoveryCaps") -> "DiscoveryCaps":
        """Return the minimum of each cap."""
        names = [cap.name for cap in fields(self)]
        return DiscoveryCaps(**{name: min(getattr(self, name), getattr(other, name)) for name in names})


@dataclass(frozen=True)
class DiscoveryRule:
    """Path patterns for one kind of file, in order of precedence.

    With `take="first"`, only the first path that exists is used in each folder. A path may contain one `*`,
    as a folder name or inside a file name. As in a shell, the `*` does not match a leading dot.
    """

    kind: FileKind
    paths: tuple[str, ...]
    at: RuleScope = "each"
    take: MatchMode = "all"


@dataclass(frozen=True)
class Harness:
    """All files that a harness reads, in reading order."""

    name: str
    rules: tuple[DiscoveryRule, ...]
    # Replaces the home directory: a path below the source's root, "" for the root itself.
    global_folder: str = ""
    # Paths below the root that contain folders with a SKILL.md. They have the lowest precedence.
    extra_skill_folders: tuple[str, ...] = ()
    # Disabled kinds.
    off: tuple[FileKind, ...] = ()
    # Names of folders that a search through the whole source skips.
    skip_folders: tuple[str, ...] = (".git", ".hg", ".svn", ".venv", "__pycache__", "node_modules")
    caps: DiscoveryCaps = field(default_factory=DiscoveryCaps)

    @property
    def active_rules(self) -> tuple[DiscoveryRule, ...]:
        """The rules of all enabled kinds, and one more rule for the extra skill folders."""
        extra = DiscoveryRule(
            "skill", tuple(f"/{folder}/*/SKILL.md" for folder in self.extra_skill_folders), "project"
        )
        return tuple([rule for rule in (*self.rules, extra) if rule.kind not in self.off and rule.paths])


OPAL = Harness(
    "opal",
    (
        DiscoveryRule(
            "context",
            (
                *("AGENTS.md", ".agents/AGENTS.md", ".opal/AGENTS.md"),
                *("OPAL.md", ".agents/OPAL.md", ".opal/OPAL.md"),
            ),
        ),
        DiscoveryRule(
            "skill",
            (
                *(".agents/skills/*/SKILL.md", ".github/skills/*/SKILL.md"),
                *("~/.agents/skills/*/SKILL.md", "~/.opal/skills/*/SKILL.md"),
            ),
            "project",
        ),
    ),
)

PI = Harness(
    "pi",
    (
        # These files are read only in the working directory and the global folder, never in parent folders.
        DiscoveryRule("base", (".sf/SYSTEM.md", "~/.sf/agent/SYSTEM.md"), "project", "first"),
        DiscoveryRule("append", (".sf/APPEND_SYSTEM.md", "~/.sf/agent/APPEND_SYSTEM.md"), "project", "first"),
        DiscoveryRule("context", ("~/.sf/agent/AGENTS.md",), "project"),
        DiscoveryRule("context", ("AGENTS.md", "CLAUDE.md"), take="first"),
        DiscoveryRule(
            "skill",
            (
                *(".agents/skills/*/SKILL.md", ".sf/skills/*/SKILL.md"),
                *("~/.agents/skills/*/SKILL.md", "~/.sf/agent/skills/*/SKILL.md"),
            ),
            "project",
        ),
    ),
)

MOLTIS = Harness(
    "moltis",
    (
        DiscoveryRule(
            "persona", ("~/.moltis/IDENTITY.md", "~/.moltis/SOUL.md", "~/.moltis/USER.md"), "project"
        ),
        DiscoveryRule("context", ("CLAUDE.md", "CLAUDE.local.md", ".claude/rules/*.md", "AGENTS.md")),
        DiscoveryRule("skill", (".moltis/skills/*/SKILL.md", "~/.moltis/skills/*/SKILL.md"), "project"),
        DiscoveryRule("workspace", ("~/.moltis/AGENTS.md", "~/.moltis/TOOLS.md"), "project"),
    ),
)

OPENCLAW = Harness(
    "openclaw",
    (
        # The working directory is OpenClaw's workspace. A file that is missing there is read from OpenClaw's
        # default workspace.
        DiscoveryRule("persona", ("IDENTITY.md", "~/.openclaw/workspace/IDENTITY.md"), "project", "first"),
        DiscoveryRule("persona", ("SOUL.md", "~/.openclaw/workspace/SOUL.md"), "project", "first"),
        DiscoveryRule("persona", ("USER.md", "~/.openclaw/workspace/USER.md"), "project", "first"),
        DiscoveryRule("workspace", ("AGENTS.md", "~/.openclaw/workspace/AGENTS.md"), "project", "first"),
        DiscoveryRule("workspace", ("TOOLS.md", "~/.openclaw/workspace/TOOLS.md"), "project", "first"),
        DiscoveryRule(
            "skill",
            (
                *("skills/*/SKILL.md", ".agents/skills/*/SKILL.md"),
                *("~/.agents/skills/*/SKILL.md", "~/.openclaw/skills/*/SKILL.md"),
            ),
            "project",
        ),
    ),
)

CLAUDE_CODE = Harness(
    "claude-code",
    (
        DiscoveryRule("context", ("~/.claude/CLAUDE.md", "~/.claude/rules/*.md"), "project"),
        DiscoveryRule("context", ("CLAUDE.md", ".claude/CLAUDE.md", ".claude/rules/*.md", "CLAUDE.local.md")),
        # Skills in the home directory take precedence over skills of the project.
        DiscoveryRule("skill", ("~/.claude/skills/*/SKILL.md", ".claude/skills/*/SKILL.md"), "project"),
    ),
)

PLAIN = Harness(
    "plain",
    (
        DiscoveryRule("context", ("AGENTS.md",)),
        DiscoveryRule("skill", (".agents/skills/*/SKILL.md",), "project"),
    ),
)

HARNESSES = {harness.name: harness for harness in (OPAL, PI, MOLTIS, OPENCLAW, CLAUDE_CODE, PLAIN)}
