"""manage.py up."""
