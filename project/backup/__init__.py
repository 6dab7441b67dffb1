"""Backups: a consistent database snapshot and the checkpoint files, in a folder created atomically."""
