"""Django's PostgreSQL, which is told with every statement how far it may look."""
