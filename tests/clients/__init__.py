"""The Python client, against a stand-in that misbehaves and against the real server."""
