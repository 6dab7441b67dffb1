"""What people fill in, one module per theme."""
