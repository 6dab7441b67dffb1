"""Commands of the personas app."""
