"""Tenancy: determine the workspace of a request, and base classes for models that belong to a workspace."""
