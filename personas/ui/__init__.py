"""User interface helpers: navigation, toasts, sorting, export, responses."""
