"""Discovery rules of a workspace: built-in rules and custom copies."""
