"""API keys: format, scopes, services, pages and API."""
