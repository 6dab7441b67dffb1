"""The signal `agent_changed`, sent when an input of agents' prompts changes, such as a record or a file."""

from django.dispatch import Signal

# Arguments: `workspace_id`, `agent_ids`, `cause` (a Revision, the refresh of a source, or None) and, if there
# is no cause, `by`. This is the actor: authors of a change may not approve its release.
# The signal is sent inside the transaction of the change. An exception in a receiver rolls the change back.
# `prompts/receivers.py` builds a few prompts in the same transaction, before its commit. If there are many,
# or a build fails, it stores the causes in the transaction, and workers build the prompts after the commit.
agent_changed = Signal()
