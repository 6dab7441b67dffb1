"""Text helpers: front matter and YAML, diffs, lists of names."""
