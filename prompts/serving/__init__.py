"""Serve prompts to bots and members, and record each served prompt in the ledger.

No prompt is served without its ledger row. If the process has the request cached, one INSERT statement
checks that key and label are unchanged and writes the row.
"""
