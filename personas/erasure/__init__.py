"""Erasure of personal data from records and their history."""
