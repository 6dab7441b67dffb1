"""Path patterns of the context files that agents read; they match in any folder of a project."""

import re

# The paths of the server's discovery rules: general ones, then those of each harness.
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
# Personal files, usually not committed: included only on request.
PERSONAL = ("CLAUDE.local.md",)
# The only hidden folders that are searched.
SEARCHED_HIDDEN_FOLDERS = frozenset({".agents", ".claude", ".github", ".moltis", ".openclaw", ".opal", ".sf"})
SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})


def _compile_patterns(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Compile glob patterns that match below any folder; a star matches a name without a leading dot."""
    expressions = [re.escape(pattern).replace(r"\*", r"[^/.][^/]*") for pattern in patterns]
    return re.compile(rf"(?:.*/)?(?:{'|'.join(expressions)})")


_SHARED_PATTERN = _compile_patterns(FILES)
_PERSONAL_PATTERN = _compile_patterns((*FILES, *PERSONAL))


def is_context_file(path: str, *, with_personal: bool = False) -> bool:
    """Return whether agents read this path, which is relative to the project and uses slashes."""
    return (_PERSONAL_PATTERN if with_personal else _SHARED_PATTERN).fullmatch(path) is not None


def is_searched_folder(folder: str) -> bool:
    """Return whether folders of this name are searched."""
    return folder in SEARCHED_HIDDEN_FOLDERS or not (folder.startswith(".") or folder in SKIPPED_FOLDERS)
