"""Prompt versions: text, lockfile, diff, timeline, pages and API."""
