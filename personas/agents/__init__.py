"""Agents: records, pages and API."""
