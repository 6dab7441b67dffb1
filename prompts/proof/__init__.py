"""Tamper evidence: hash chains, signed checkpoints and evidence bundles. The package uses no database."""
