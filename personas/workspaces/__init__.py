"""Workspaces: models, services and pages."""
