"""The bots' door to prompts: fetch, render, many at once, versions and ledger."""
