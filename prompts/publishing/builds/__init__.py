"""Builds: from changed records to published versions."""
