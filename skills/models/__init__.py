"""The records of the skills app."""

from skills.models.files import ContextFile, FileAgent, FileRevision, FileState, Reach, Verdict, Waiver
from skills.models.rule_sets import RuleSet
from skills.models.skills import Skill, SkillLink
from skills.models.sources import (
    Adoption,
    AgentContext,
    PushedFile,
    RefreshRun,
    RunStatus,
    Source,
    SourceGrant,
    SourceKind,
    is_allowed,
)

__all__ = [
    "Adoption",
    "AgentContext",
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
    "Verdict",
    "Waiver",
    "is_allowed",
]
