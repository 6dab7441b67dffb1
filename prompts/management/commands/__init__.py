"""Management commands of the prompts app, one module each."""
