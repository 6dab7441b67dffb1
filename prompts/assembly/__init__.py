"""Assemble prompts from inputs: a pure package that uses only the standard library."""
