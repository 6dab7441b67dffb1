"""The records of the personas app."""

from personas.models.agents import (
    LAYOUTS,
    Agent,
    AgentChannel,
    AgentTool,
    Identity,
    ReleasePolicy,
    Soul,
    ToolUse,
)
from personas.models.base import ForeignLink, Record, ScopedManager, UnscopedQuery, WorkspaceOwned
from personas.models.channels import BUILT_IN, Channel
from personas.models.contents import Content, digest_of
from personas.models.drafts import KeptDraft
from personas.models.erasures import Erasure
from personas.models.history import AuditEvent, Revision
from personas.models.idempotency import KeptAnswer
from personas.models.keys import ApiKey
from personas.models.members import Invitation, Membership
from personas.models.memories import Memory, MemoryState
from personas.models.named import Named
from personas.models.profiles import UserProfile
from personas.models.tools import Tool
from personas.models.work import Responsibility, Task, TaskStatus, TaskStep
from personas.models.workspaces import User, Workspace

__all__ = [
    "BUILT_IN",
    "LAYOUTS",
    "Agent",
    "AgentChannel",
    "AgentTool",
    "ApiKey",
    "AuditEvent",
    "Channel",
    "Content",
    "Erasure",
    "ForeignLink",
    "Identity",
    "Invitation",
    "KeptAnswer",
    "KeptDraft",
    "Membership",
    "Memory",
    "MemoryState",
    "Named",
    "Record",
    "ReleasePolicy",
    "Responsibility",
    "Revision",
    "ScopedManager",
    "Soul",
    "Task",
    "TaskStatus",
    "TaskStep",
    "Tool",
    "ToolUse",
    "UnscopedQuery",
    "User",
    "UserProfile",
    "Workspace",
    "WorkspaceOwned",
    "digest_of",
]
