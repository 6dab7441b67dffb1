"""What the fleet page asks: every agent on every channel, how it stands, and what waits for someone."""
