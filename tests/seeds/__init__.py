"""One file per seed: every rule, table and literal, asserted with the library and by REST."""
