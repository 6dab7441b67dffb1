"""The review step before production changes: which prompts change, the diff, then the button."""
