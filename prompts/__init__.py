"""From records to served text; empty, so that the core imports nothing."""
