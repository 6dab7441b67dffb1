"""Previews of unsaved changes and their impact on prompts."""
