"""What templates may say about versions."""
