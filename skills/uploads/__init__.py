"""Pushed files: uploaded as a zip archive or sent through the API."""
