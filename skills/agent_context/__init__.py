"""Which context files an agent reads."""
