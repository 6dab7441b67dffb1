"""Database helpers: row-level security, append-only tables, custom fields, replica reads."""
