"""Responsibilities and tasks: records, pages and API."""
