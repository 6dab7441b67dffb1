"""Commands of the prompts app."""
