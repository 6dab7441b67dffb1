"""The ledger of served prompts: rows, blocks, partitions, retention, reports."""
