"""Quick start: create an agent with soul, channel and API key on one page; wait for the first request."""
