"""System checks behind `manage.py doctor`: each finding has a message and advice for the operator."""
