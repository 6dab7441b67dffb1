"""What can be done with skills, sources and the files found there."""
