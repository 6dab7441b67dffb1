"""Commands of the prompts app, one module each."""
