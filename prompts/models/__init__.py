"""The records of the prompts app."""

from prompts.models.labels import LATEST, PRODUCTION, LabelMove, LabelRule, PromptLabel
from prompts.models.ledger import LedgerBlock, LedgerEntry, LedgerRollOff
from prompts.models.lines import AgentPrompt, BuildCause
from prompts.models.proof import Checkpoint, SigningKey, VerificationRun, VerificationState
from prompts.models.releases import Release, ReleaseItem, ReleaseStatus
from prompts.models.reports import DigestReport
from prompts.models.settings import PromptSettings
from prompts.models.versions import PromptVersion, VersionPart

__all__ = [
    "LATEST",
    "PRODUCTION",
    "AgentPrompt",
    "BuildCause",
    "Checkpoint",
    "DigestReport",
    "LabelMove",
    "LabelRule",
    "LedgerBlock",
    "LedgerEntry",
    "LedgerRollOff",
    "PromptLabel",
    "PromptSettings",
    "PromptVersion",
    "Release",
    "ReleaseItem",
    "ReleaseStatus",
    "SigningKey",
    "VerificationRun",
    "VerificationState",
    "VersionPart",
]
