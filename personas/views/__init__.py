"""Pages, one module per theme."""
