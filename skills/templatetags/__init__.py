"""Template tags of the skills app."""
