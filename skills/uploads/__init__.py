"""Files uploaded through the API."""
