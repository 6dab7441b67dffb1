"""The signal `agent_changed`, sent when an input of agents' prompts changes, such as a record or a file."""

from django.dispatch import Signal

# Arguments: `workspace_id`, `agent_ids` and `cause` (a Revision, the refresh of a source, or None).
# The signal is sent inside the transaction of the change. Receivers must rebuild prompts after the commit.
agent_changed = Signal()
