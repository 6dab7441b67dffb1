"""The signal `agent_changed`, sent when an input of agents' prompts changes, such as a record or a file."""

from django.dispatch import Signal

# Arguments: `workspace_id`, `agent_ids`, `cause` (a Revision, a RefreshRun or None) and `by`, the
# actor. `by` counts as the author if there is no cause; authors of a change may not approve its release.
# The signal is sent inside the transaction that makes the change; an exception in a receiver rolls it back.
# If few prompts are affected, `prompts/receivers.py` builds them in that transaction, before the commit.
# If many are, or a build fails, it only stores the causes there, and workers build after the commit.
agent_changed = Signal()
