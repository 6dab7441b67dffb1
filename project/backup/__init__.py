"""Backups: a consistent snapshot of the database with its proofs, in a folder that is created atomically."""
