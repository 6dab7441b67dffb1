"""Where each harness looks for its files: rules as rows, so that a workspace can keep a copy of its own."""

from dataclasses import dataclass, field, fields, replace
from typing import Literal, get_args

FileKind = Literal["base", "append", "persona", "context", "workspace", "skill"]
# In each folder from the source's root down to the working directory, or in the working directory alone.
RuleScope = Literal["each", "project"]
MatchMode = Literal["all", "first"]
FILE_KINDS: tuple[FileKind, ...] = get_args(FileKind)
RULE_SCOPES: tuple[RuleScope, ...] = get_args(RuleScope)
MATCH_MODES: tuple[MatchMode, ...] = get_args(MatchMode)
# Written before a path that lies in the harness's global folder, as people write it.
HOME_PREFIX = "~/"


@dataclass(frozen=True)
class DiscoveryCaps:
    """How much one discovery may look at; a workspace may lower these, never raise them."""

    file_bytes: int = 256 * 1024
    total_bytes: int = 16 * 1024 * 1024
    files: int = 2_000
    entries: int = 100_000
    depth: int = 20
    seconds: float = 20.0

    def lowest_with(self, other: "DiscoveryCaps") -> "DiscoveryCaps":
        """The smaller of each."""
        names = [cap.name for cap in fields(self)]
        return DiscoveryCaps(**{name: min(getattr(self, name), getattr(other, name)) for name in names})


@dataclass(frozen=True)
class DiscoveryRule:
    """Paths of one kind, in the order they count; with "first" the first that is there wins, per folder.

    A path may hold one `*`, as a folder's name or in a file's; like a shell's it matches no leading dot.
    """

    kind: FileKind
    paths: tuple[str, ...]
    at: RuleScope = "each"
    take: MatchMode = "all"


@dataclass(frozen=True)
class Harness:
    """Everything a harness reads, in the order it reads it."""

    name: str
    rules: tuple[DiscoveryRule, ...]
    # Stands for the home directory; a path below the source's root, "" is the root itself.
    global_folder: str = ""
    # Below the root, each holding folders with a SKILL.md; they count last.
    extra_skill_folders: tuple[str, ...] = ()
    # Kinds that are switched off.
    off: tuple[FileKind, ...] = ()
    # Never walked into when a whole source is looked through.
    skip_folders: tuple[str, ...] = (".git", ".hg", ".svn", ".venv", "__pycache__", "node_modules")
    caps: DiscoveryCaps = field(default_factory=DiscoveryCaps)

    @property
    def active_rules(self) -> tuple[DiscoveryRule, ...]:
        """What is switched on, with the extra skill folders as one more rule."""
        extra = DiscoveryRule(
            "skill", tuple(f"/{folder}/*/SKILL.md" for folder in self.extra_skill_folders), "project"
        )
        return tuple([rule for rule in (*self.rules, extra) if rule.kind not in self.off and rule.paths])

    def without_kinds(self, *kinds: FileKind) -> "Harness":
        return replace(self, off=kinds)


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
        # In the project's and the global config folder only, never in parents.
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
        # The working directory is the workspace; the usual one stands in where a file is absent.
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
        # Personal skills win over the project's.
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
