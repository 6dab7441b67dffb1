"""Souls: records and pages."""
