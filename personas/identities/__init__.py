"""Identities: records and pages."""
