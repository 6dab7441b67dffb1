"""What templates may say about files."""
