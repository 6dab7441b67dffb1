"""Checkpoints, signing keys and verification."""
