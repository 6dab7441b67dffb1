"""All models of the personas app."""

from personas.accounts.models import SecurityEvent, SecurityEventKind
from personas.agents.models import (
    LAYOUTS,
    Agent,
    AgentChannel,
    AgentTool,
    ToolUse,
)
from personas.api.models import IdempotentResponse
from personas.api_keys.models import ApiKey
from personas.audit.models import AuditEvent
from personas.channels.models import BUILT_IN_CHANNELS, Channel
from personas.contents.models import Content, ErasableContent, sha256_digest
from personas.drafts.models import FormDraft
from personas.erasure.models import Erasure, ErasureCounter, ErasureProgress
from personas.events.models import Event, EventCounter
from personas.identities.models import Identity
from personas.limits.models import DailyStorage, DailyUsage
from personas.members.models import Invitation, Membership
from personas.memories.models import Memory, MemoryStatus
from personas.notifications.models import (
    Notification,
    NotificationDelivery,
    NotificationKind,
    NotificationPreference,
    NotificationQueue,
)
from personas.records.models import Named, Record, Revision
from personas.souls.models import Soul
from personas.tenancy.models import CrossWorkspaceLink, ScopedManager, UnscopedQuery, WorkspaceOwned
from personas.tools.models import Tool
from personas.user_profiles.models import UserProfile
from personas.webhooks.models import (
    DeliveryStatus,
    EndpointStatus,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookQueue,
)
from personas.work.models import Responsibility, Task, TaskStatus, TaskStep
from personas.workspaces.models import ReleasePolicy, User, Workspace

__all__ = [
    "BUILT_IN_CHANNELS",
    "LAYOUTS",
    "Agent",
    "AgentChannel",
    "AgentTool",
    "ApiKey",
    "AuditEvent",
    "Channel",
    "Content",
    "CrossWorkspaceLink",
    "DailyStorage",
    "DailyUsage",
    "DeliveryStatus",
    "EndpointStatus",
    "ErasableContent",
    "Erasure",
    "ErasureCounter",
    "ErasureProgress",
    "Event",
    "EventCounter",
    "FormDraft",
    "IdempotentResponse",
    "Identity",
    "Invitation",
    "Membership",
    "Memory",
    "MemoryStatus",
    "Named",
    "Notification",
    "NotificationDelivery",
    "NotificationKind",
    "NotificationPreference",
    "NotificationQueue",
    "Record",
    "ReleasePolicy",
    "Responsibility",
    "Revision",
    "ScopedManager",
    "SecurityEvent",
    "SecurityEventKind",
    "Soul",
    "Task",
    "TaskStatus",
    "TaskStep",
    "Tool",
    "ToolUse",
    "UnscopedQuery",
    "User",
    "UserProfile",
    "WebhookAttempt",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WebhookQueue",
    "Workspace",
    "WorkspaceOwned",
    "sha256_digest",
]
