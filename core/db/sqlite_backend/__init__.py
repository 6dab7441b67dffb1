"""SQLite database backend of the product."""
