"""Comments on memories and on lines of versions."""
