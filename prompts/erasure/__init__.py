"""Erasure in versions and ledger."""
