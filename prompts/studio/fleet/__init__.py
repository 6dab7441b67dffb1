"""The fleet page, home of a workspace: the status of every agent on every channel, and pending work."""
