"""What makes the record tamper-evident: hashes, chains, signed checkpoints and evidence; pure."""
