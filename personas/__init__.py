"""Agents and their records, user accounts, tenancy and the shared parts of the REST API."""
