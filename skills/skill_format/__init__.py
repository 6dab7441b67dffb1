"""Parse and validate SKILL.md files, and decide which problems each harness tolerates. Pure functions."""
