"""What agents can do: skills, and context found on disk."""
