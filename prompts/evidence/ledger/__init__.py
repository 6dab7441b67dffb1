"""The ledger, an append-only log of served prompts: rows, blocks, partitions, retention and outdated bots."""
