"""Tenant isolation tests (promise R1): seeded data, route tables, expected statuses, and leak detection."""
