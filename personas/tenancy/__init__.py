"""The workspace of a request, and models that belong to a workspace."""
