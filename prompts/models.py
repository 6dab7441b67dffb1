"""All models of the prompts app."""

from prompts.builds.models import BuildCause
from prompts.call_contents.models import CallContent
from prompts.comments.models import Comment
from prompts.integrity.models import Checkpoint, SigningKey, VerificationRun, VerificationStatus
from prompts.labels.models import LATEST, PRODUCTION, LabelMove, LabelRule, MoveReason, PromptLabel
from prompts.ledger.models import BotStatus, DigestReport, LedgerBlock, LedgerEntry, LedgerExpiry
from prompts.releases.models import (
    Release,
    ReleaseComment,
    ReleaseItem,
    ReleaseReviewer,
    ReleaseStatus,
)
from prompts.settings.models import PromptSettings
from prompts.versions.models import AgentPrompt, PromptVersion, VersionPart

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
