"""Database configuration, roles and the audit of row-level security."""
