"""Refresh runs: reading sources again, and watching them for changes."""
