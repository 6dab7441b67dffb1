"""Code without domain knowledge: database helpers, text, the task queue. It imports no app."""
