"""Discovery rules of a workspace."""
