"""Commands of the skills app, one module each."""
