"""The signal `agent_changed`: an input of agents' prompts has changed."""

from django.dispatch import Signal

# Sent inside the transaction with `workspace_id`, `agent_ids` and `cause` (a Revision or None).
# Receivers must act after the commit.
agent_changed = Signal()
