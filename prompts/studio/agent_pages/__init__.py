"""Pages of one agent about its prompts: the channels tab and the activity tab."""
