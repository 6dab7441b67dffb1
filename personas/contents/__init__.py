"""Content-addressed storage: bytes stored once per workspace under their digest."""
