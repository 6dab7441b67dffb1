"""The checks that `manage.py doctor` runs: each finding has a message and advice for the operator."""
