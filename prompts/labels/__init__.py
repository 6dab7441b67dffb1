"""Labels and their moves."""
