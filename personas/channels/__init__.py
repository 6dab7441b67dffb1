"""Channels: records and pages."""
