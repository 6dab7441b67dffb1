"""Tamper evidence: hash chains, signed checkpoints and evidence bundles; a pure package."""
