"""The addresses of skills, sources and context files in the API."""
