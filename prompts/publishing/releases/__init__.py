"""Releases: review and approval before production."""
