"""Sources: folders and uploads that context files come from."""
