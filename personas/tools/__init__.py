"""Tools: records and pages."""
