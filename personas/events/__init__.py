"""Events: what happened in a workspace, numbered without gaps, for the API, webhooks and notifications."""
