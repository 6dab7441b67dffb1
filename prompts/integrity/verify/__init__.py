"""Recomputes everything that the record of a workspace says of itself."""

from prompts.integrity.verify.results import WorkspaceVerification
from prompts.integrity.verify.workspace import verify_workspace

__all__ = ["WorkspaceVerification", "verify_workspace"]
