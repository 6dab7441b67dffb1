"""Verification: recompute every hash, digest and signature of a workspace."""

from prompts.evidence.integrity.verify.results import WorkspaceVerification
from prompts.evidence.integrity.verify.workspace import verify_workspace

__all__ = ["WorkspaceVerification", "verify_workspace"]
