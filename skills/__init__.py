"""Skills, and the context files that are discovered in sources."""
