"""Text → findings: what a file says that its reader cannot see, should not hold or must not claim; pure."""

from skills.scanning.characters import visible
from skills.scanning.findings import Finding, Kind, Rule, Severity
from skills.scanning.rules import RULES
from skills.scanning.scanner import is_blocked, scan
from skills.scanning.secrets import key_checksum

__all__ = ["RULES", "Finding", "Kind", "Rule", "Severity", "is_blocked", "key_checksum", "scan", "visible"]
