"""Stored versions, labels and the ledger will live here."""
