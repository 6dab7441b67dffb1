"""Which files of a project agents read: the names that the server's rules know, in any folder."""

import re

# Those of no harness in particular, and those of one; each may lie in any folder of the project.
FILES = (
    *("AGENTS.md", "CLAUDE.md", "OPAL.md", "IDENTITY.md", "SOUL.md", "USER.md", "MEMORY.md", "TOOLS.md"),
    *(".agents/AGENTS.md", ".agents/OPAL.md", ".opal/AGENTS.md", ".opal/OPAL.md"),
    *(".claude/CLAUDE.md", ".claude/rules/*.md"),
    *(".sf/SYSTEM.md", ".sf/APPEND_SYSTEM.md", ".sf/agent/SYSTEM.md", ".sf/agent/APPEND_SYSTEM.md"),
    *(".sf/agent/AGENTS.md", "skills/*/SKILL.md", ".agents/skills/*/SKILL.md", ".github/skills/*/SKILL.md"),
    *(".opal/skills/*/SKILL.md", ".sf/skills/*/SKILL.md", ".sf/agent/skills/*/SKILL.md"),
    *(".moltis/IDENTITY.md", ".moltis/SOUL.md", ".moltis/USER.md", ".moltis/AGENTS.md", ".moltis/TOOLS.md"),
    *(".moltis/skills/*/SKILL.md", ".claude/skills/*/SKILL.md", ".openclaw/skills/*/SKILL.md"),
)
# One person's own words, kept out of the project's history on purpose: only when asked for.
PERSONAL = ("CLAUDE.local.md",)
# Folders with a leading dot are not looked into, but for these.
HIDDEN = frozenset({".agents", ".claude", ".github", ".moltis", ".openclaw", ".opal", ".sf"})
SKIPPED = frozenset({"__pycache__", "node_modules"})


def _shape(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Below any folder; a star stands for a name without a leading dot."""
    written = [re.escape(pattern).replace(r"\*", r"[^/.][^/]*") for pattern in patterns]
    return re.compile(rf"(?:.*/)?(?:{'|'.join(written)})")


_KNOWN = _shape(FILES)
_PERSONAL = _shape((*FILES, *PERSONAL))


def is_context(path: str, *, with_personal: bool = False) -> bool:
    """Whether agents read a file at this path, written with / from the project down."""
    return (_PERSONAL if with_personal else _KNOWN).fullmatch(path) is not None


def is_entered(folder: str) -> bool:
    """Whether a folder of this name is looked into."""
    return folder in HIDDEN or not (folder.startswith(".") or folder in SKIPPED)
