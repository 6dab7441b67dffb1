"""SKILL.md: parser, rules and tolerance; pure."""
