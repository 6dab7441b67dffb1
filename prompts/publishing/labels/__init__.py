"""Labels, which are movable pointers to versions of a prompt, and the history of their moves."""
