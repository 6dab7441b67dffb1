"""The pages of the skills app."""
