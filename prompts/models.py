"""All models of the prompts app."""

from prompts.evidence.integrity.models import Checkpoint, SigningKey, VerificationRun, VerificationStatus
from prompts.evidence.ledger.models import BotStatus, DigestReport, LedgerBlock, LedgerEntry, LedgerExpiry
from prompts.publishing.builds.models import BuildCause
from prompts.publishing.comments.models import Comment
from prompts.publishing.labels.models import LATEST, PRODUCTION, LabelMove, LabelRule, MoveReason, PromptLabel
from prompts.publishing.releases.models import (
    Release,
    ReleaseComment,
    ReleaseItem,
    ReleaseReviewer,
    ReleaseStatus,
)
from prompts.publishing.settings.models import PromptSettings
from prompts.publishing.versions.models import AgentPrompt, PromptVersion, VersionPart
from prompts.serving.call_contents.models import CallContent

__all__ = [
    "LATEST",
    "PRODUCTION",
    "AgentPrompt",
    "BotStatus",
    "BuildCause",
    "CallContent",
    "Checkpoint",
    "Comment",
    "DigestReport",
    "LabelMove",
    "LabelRule",
    "LedgerBlock",
    "LedgerEntry",
    "LedgerExpiry",
    "MoveReason",
    "PromptLabel",
    "PromptSettings",
    "PromptVersion",
    "Release",
    "ReleaseComment",
    "ReleaseItem",
    "ReleaseReviewer",
    "ReleaseStatus",
    "SigningKey",
    "VerificationRun",
    "VerificationStatus",
    "VersionPart",
]
