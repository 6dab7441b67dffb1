"""User profiles: records and pages."""
