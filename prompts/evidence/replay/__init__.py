"""Replay of served prompts, and evidence bundles."""
