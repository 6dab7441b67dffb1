"""Audit events and audited exports."""
