"""Context files: revisions, statuses, policy, pages and API."""
