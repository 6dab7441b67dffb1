"""Django's PostgreSQL backend with the workspace scope of row-level security set for every statement."""
