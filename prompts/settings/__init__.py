"""Prompt settings of workspace, agent and channel."""
