"""The records of the personas app."""

from personas.agents.models import (
    LAYOUTS,
    Agent,
    AgentChannel,
    AgentTool,
    Identity,
    ReleasePolicy,
    Soul,
    ToolUse,
)
from personas.api.models import KeptAnswer
from personas.api_keys.models import ApiKey
from personas.audit.models import AuditEvent
from personas.channels.models import BUILT_IN, Channel
from personas.contents.models import Content, digest_of
from personas.drafts.models import KeptDraft
from personas.erasure.models import Erasure
from personas.members.models import Invitation, Membership
from personas.memories.models import Memory, MemoryState
from personas.records.models import Named, Record, Revision
from personas.tenancy.models import ForeignLink, ScopedManager, UnscopedQuery, WorkspaceOwned
from personas.tools.models import Tool
from personas.user_profiles.models import UserProfile
from personas.work.models import Responsibility, Task, TaskStatus, TaskStep
from personas.workspaces.models import User, Workspace

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
