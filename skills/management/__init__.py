"""Commands of the skills app."""
