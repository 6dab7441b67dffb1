"""Audit log: events, pages and API, and exports that write an audit event."""
