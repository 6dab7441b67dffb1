"""Migration operations that break the rule for zero-downtime migrations, and why they are accepted.

A new entry needs a reason that an operator would accept: which lock, on which table, for how long, and what
the previous release does meanwhile. Released migrations are never changed.
"""

FIRST = "before the first release: no installation had rows in it"

SETTINGS_INDEX = (
    "a partial unique index on prompt settings, which have at most one row per agent, channel and prompt: "
    "building it takes milliseconds, fetches do not read the table, and a saved form waits that long"
)
SETTINGS_COLUMN = (
    "the type of the column stays the same and no row is rewritten: a unique constraint of a small table is "
    "replaced by an index; the previous release never writes a second row for a level"
)

FROZEN: dict[str, dict[str, str]] = {
    "personas.0003_contents_and_trust": {"AddField workspace skills_need_trust": FIRST},
    "personas.0005_months_of_ledger": {"AddField workspace ledger_months": FIRST},
    "personas.0007_kinds_of_keys": {"AddField apikey kind": FIRST},
    "prompts.0003_ledger_rolls_off": {"AddIndex ledgerentry ledger_in_order": FIRST},
    "prompts.0005_roll_offs_are_chained": {
        "AddField ledgerrolloff previous_hash": FIRST,
        "AddField ledgerrolloff hash": FIRST,
        "AddIndex ledgerblock ledger_blocks_by_row": FIRST,
    },
    "prompts.0006_heads_and_signing_keys": {"AddField checkpoint heads": FIRST},
    "prompts.0008_compiler_of_prompts": {"AddField agentprompt compiler": FIRST},
    "prompts.0009_versions_take_less_room": {
        "AlterField promptversion sizes": FIRST,
        "AlterField promptversion lockfile": FIRST,
        "AlterField promptversion causes": FIRST,
    },
    "prompts.0012_ledger_by_month": {
        "CreateLedgerFunctions": "functions that nobody calls yet: no table is locked",
        "PartitionByMonth": "rows are read without blocking writers; then tables are renamed under a lock "
        "on the ledger, for some hundredths of a second whatever its size "
        "(tests/prompts/ledger/test_partition_migration.py shows that no row is read under it); fetches "
        "wait for it, and the previous release finds a table with the same columns",
    },
    "prompts.0015_prompt_level_settings": {
        "AddConstraint promptsettings settings_once_per_agent": SETTINGS_INDEX,
        "AddConstraint promptsettings settings_once_per_channel": SETTINGS_INDEX,
        "AddConstraint promptsettings settings_once_per_prompt": SETTINGS_INDEX,
        "AlterField promptsettings agent": SETTINGS_COLUMN,
        "AlterField promptsettings channel": SETTINGS_COLUMN,
    },
    "prompts.0023_ledger_functions": {
        "ReplaceLedgerFunctions": "functions with the same arguments and results: no table is locked, and "
        "the previous release can call them",
    },
    "prompts.0024_ledger_function_for_citus": {
        "ReplaceLedgerFunctions": "functions with the same arguments and results: no table is locked, and "
        "the previous release can call them",
    },
    "prompts.0032_removed_workspaces": {
        "AllowWorkspaceRemoval": "replaces trigger functions, which locks no table; what was refused before "
        "is refused after it, except for workspaces that were deleted two weeks ago",
    },
    "skills.0011_plain_labels": {
        "AlterConstraint source source_schedule_sane": "changes the error message only; the condition is the "
        "same, so no statement is run",
    },
    "prompts.0011_versions_by_beginning": {"AddIndex promptversion versions_by_beginning": FIRST},
}
