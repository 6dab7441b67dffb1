"""Middleware: body size, request log, row-level security, sessions."""
