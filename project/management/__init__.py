"""Django commands of the project."""
