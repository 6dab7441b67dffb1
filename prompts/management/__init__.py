"""Management commands of the prompts app."""
