"""Re-exports all models of the skills app."""

from skills.files.models import AssignedTo, ContextFile, FileAgent, FileRevision, FileStatus, Verdict, Waiver
from skills.library.models import Skill, SkillLink
from skills.rule_sets.models import RuleSet
from skills.sources.models import (
    AgentContext,
    AgentSource,
    AllowedFolder,
    Approval,
    PushedFile,
    RefreshRun,
    RunStatus,
    Source,
    SourceKind,
    SourceScope,
    is_folder_allowed,
)

__all__ = [
    "AgentContext",
    "AgentSource",
    "AllowedFolder",
    "Approval",
    "AssignedTo",
    "ContextFile",
    "FileAgent",
    "FileRevision",
    "FileStatus",
    "PushedFile",
    "RefreshRun",
    "RuleSet",
    "RunStatus",
    "Skill",
    "SkillLink",
    "Source",
    "SourceKind",
    "SourceScope",
    "Verdict",
    "Waiver",
    "is_folder_allowed",
]
