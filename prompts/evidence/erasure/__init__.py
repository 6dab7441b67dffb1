"""Erasure of personal data from versions."""
