"""Pages of one agent that show its prompts."""
