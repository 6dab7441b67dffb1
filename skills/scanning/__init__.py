"""Scan text for hidden characters, secrets, prompt tags, hidden instructions and broad permissions.

Pure functions: the package uses no database and reads no files.
"""

from skills.scanning.characters import mark_hidden_characters
from skills.scanning.findings import Finding, ScanRule, Severity, TextKind
from skills.scanning.rules import SCAN_RULES
from skills.scanning.scanner import has_blocking_finding, mask_secrets, scan_text
from skills.scanning.secrets import compute_key_checksum

__all__ = [
    "SCAN_RULES",
    "Finding",
    "ScanRule",
    "Severity",
    "TextKind",
    "compute_key_checksum",
    "has_blocking_finding",
    "mark_hidden_characters",
    "mask_secrets",
    "scan_text",
]
