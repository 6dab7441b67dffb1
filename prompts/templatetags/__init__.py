"""Template tags of the prompts app."""
