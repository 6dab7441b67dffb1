"""Labels: movable pointers to versions, and their moves."""
