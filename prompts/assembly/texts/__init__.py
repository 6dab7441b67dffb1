"""Longer texts of our own that layouts speak: default soul, storage guidance, routing, language reference."""
