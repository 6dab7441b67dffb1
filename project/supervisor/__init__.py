"""The process supervisor behind `manage.py up`."""
