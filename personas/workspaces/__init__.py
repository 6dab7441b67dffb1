"""Workspaces and user accounts: models, services and pages."""
