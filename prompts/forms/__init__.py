"""What people say when they label and release."""
