"""Limits that the operator sets: of workspaces, of persons and of email addresses."""
