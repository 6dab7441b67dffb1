"""Build, store and serve prompts. Empty, so that pure packages can be imported without Django."""
