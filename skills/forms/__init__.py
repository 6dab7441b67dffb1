"""The forms of the skills app."""
