"""The inbox of context files that need a decision."""
