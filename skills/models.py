"""Re-exports all models of the skills app."""

from skills.files.models import ContextFile, FileAgent, FileRevision, FileState, Reach, Verdict, Waiver
from skills.library.models import Skill, SkillLink
from skills.rule_sets.models import RuleSet
from skills.sources.models import (
    Adoption,
    AgentContext,
    AgentSource,
    PushedFile,
    RefreshRun,
    RunStatus,
    Source,
    SourceGrant,
    SourceKind,
    SourceScope,
    is_folder_allowed,
)

__all__ = [
    "Adoption",
    "AgentContext",
    "AgentSource",
    "ContextFile",
    "FileAgent",
    "FileRevision",
    "FileState",
    "PushedFile",
    "Reach",
    "RefreshRun",
    "RuleSet",
    "RunStatus",
    "Skill",
    "SkillLink",
    "Source",
    "SourceGrant",
    "SourceKind",
    "SourceScope",
    "Verdict",
    "Waiver",
    "is_folder_allowed",
]
