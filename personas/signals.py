"""The one bell of the house: something that feeds agents' prompts has changed."""

from django.dispatch import Signal

# Sent inside the transaction with `workspace_id`, `agent_ids` and `cause` (a Revision or None);
# act on it after the commit.
agent_changed = Signal()
