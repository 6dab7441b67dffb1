"""The OpenAPI document, its pages, and the URLs of the API."""
