"""Settings from the environment that limit workspaces, persons and email addresses (docs/operations.md)."""

from project.env import env_int

__all__ = [
    "DRAMATIS_CALL_BYTES_PER_DAY",
    "DRAMATIS_EMAILS_PER_ADDRESS",
    "DRAMATIS_INVITATIONS_PER_ADDRESS",
    "DRAMATIS_INVITATIONS_PER_PERSON",
    "DRAMATIS_INVITATIONS_PER_WORKSPACE",
    "DRAMATIS_PERSON_SHARE",
    "DRAMATIS_RATE_LIMITS",
    "DRAMATIS_VISITOR_EMAILS_PER_ADDRESS",
    "DRAMATIS_WORKSPACES_PER_PERSON",
    "DRAMATIS_WORKSPACE_JOBS",
]

# Requests per minute: for one key, and for all keys of a workspace together.
DRAMATIS_RATE_LIMITS = {
    "fetch": (6_000, 60_000),
    "read": (1_200, 6_000),
    "write": (600, 3_000),
    "render": (3_000, 30_000),
}
# How many build jobs, and how many refresh jobs, one workspace may have in the queue or running. A finished
# job enqueues the next one, behind those of other workspaces. Raise this if there are more than twice as many
# worker processes.
DRAMATIS_WORKSPACE_JOBS = env_int("DRAMATIS_WORKSPACE_JOBS", 2)
# Bytes of call data and pushed files that one workspace may store per day (UTC); 0 means no limit.
DRAMATIS_CALL_BYTES_PER_DAY = env_int("DRAMATIS_CALL_BYTES_PER_DAY", 1024**3)
# How many workspaces may count for one user (personas/limits/persons.py); 0 means no limit. Operators can set
# another number for a user. A deleted workspace counts until its rows are removed.
DRAMATIS_WORKSPACES_PER_PERSON = env_int("DRAMATIS_WORKSPACES_PER_PERSON", 20)
# All workspaces of one person together may use the rate limits and daily quota of this many workspaces.
DRAMATIS_PERSON_SHARE = env_int("DRAMATIS_PERSON_SHARE", 4)
# Invitations per day (UTC), including resent ones: by one workspace, by one person, and by everyone to one
# address; 0 means no limit.
DRAMATIS_INVITATIONS_PER_WORKSPACE = env_int("DRAMATIS_INVITATIONS_PER_WORKSPACE", 50)
DRAMATIS_INVITATIONS_PER_PERSON = env_int("DRAMATIS_INVITATIONS_PER_PERSON", 100)
DRAMATIS_INVITATIONS_PER_ADDRESS = env_int("DRAMATIS_INVITATIONS_PER_ADDRESS", 5)
# Emails per address and day (UTC): those that a visitor can cause (password reset, sign-up), and those of
# each other kind (security notices, notifications); 0 means no limit.
DRAMATIS_VISITOR_EMAILS_PER_ADDRESS = env_int("DRAMATIS_VISITOR_EMAILS_PER_ADDRESS", 10)
DRAMATIS_EMAILS_PER_ADDRESS = env_int("DRAMATIS_EMAILS_PER_ADDRESS", 50)
