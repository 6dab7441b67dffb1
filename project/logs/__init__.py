"""Structured logs: configuration, and removal of secrets and tokens."""
