"""Code without domain knowledge: database helpers, text, the task queue. This package imports no app."""
