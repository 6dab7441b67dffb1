"""Recomputes everything that the record of a workspace says of itself."""

from prompts.verifying.results import Verification
from prompts.verifying.whole import verify_workspace

__all__ = ["Verification", "verify_workspace"]
