"""What was served, and the proof of it: ledger, integrity, replay, drift and erasure."""
