"""Prompt settings of workspaces, agents and channels."""
