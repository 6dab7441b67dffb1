"""Migration operations that break the rule for zero-downtime migrations, and why they are accepted.

A new entry needs a reason that an operator would accept: which lock, on which table, for how long, and what
the previous release does meanwhile. Released migrations are never changed.
"""

FIRST = "part of the first release: the tables are new and have no rows"

FROZEN: dict[str, dict[str, str]] = {
    "prompts.0003_ledger_partitions": {"CreateLedgerFunctions": FIRST, "PartitionByMonth": FIRST},
    "prompts.0005_removed_workspaces": {"AllowWorkspaceRemoval": FIRST},
}
