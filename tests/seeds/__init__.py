"""One file per seed: every rule, table and literal, asserted against what a bot fetches."""
