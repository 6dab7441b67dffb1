"""Unsaved drafts of members."""
