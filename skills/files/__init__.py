"""Context files: revisions, states, policy, pages and API."""
