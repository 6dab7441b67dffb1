"""The database function that records fetches if the tables are distributed with Citus.

Citus plans the INSERT of prompts/serving/ledger_insert.py on the coordinator and again on the worker, which
takes tens of milliseconds for its many joins. This function makes the same checks table by
table, each a short query, and is called on the worker that holds the workspace: one round trip.
"""

from prompts.serving.ledger_insert import (
    BOT_CONDITION,
    CHECKED_COLUMNS,
    CLOCK_CONDITION,
    CREATOR_CONDITION,
    ERASURES_CONDITION,
    FETCH_FUNCTION,
    KEY_CONDITION,
    POINTER_CHECKS,
    SCOPES_CONDITIONS,
    STORED_COLUMNS,
    TableCheck,
    list_table_checks,
)

ARGUMENT_TYPES = "bigint, text, boolean, integer, json"
# The caller passes the ids, because ids of a workspace must grow and sequences on workers begin with
# different numbers. The function sets the scope of row-level security, because settings of the caller's
# session do not reach the worker. The policies then restrict every query of the function to this workspace.
FUNCTION_TEMPLATE = """
CREATE OR REPLACE FUNCTION {name}(ws bigint, pointer text, is_key boolean, max_skew integer, drafts json)
RETURNS TABLE (ledger_id bigint, ledger_seal text) LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
  d record;
BEGIN
  PERFORM set_config('dramatis.workspace', ws::text, true);
  FOR d IN SELECT * FROM json_to_recordset(drafts) AS d({types}) LOOP
    CONTINUE WHEN d.workspace_id <> ws;
    CONTINUE WHEN max_skew > 0 AND NOT {clock};
    IF is_key THEN
      PERFORM 1 FROM personas_apikey r WHERE {key} AND {bot};
      IF NOT FOUND THEN
        PERFORM 1 FROM personas_apikey r WHERE {key} AND {creator};
        CONTINUE WHEN NOT FOUND;
      END IF;
    ELSE
      PERFORM 1 FROM personas_membership r WHERE r.workspace_id = ws AND r.user_id = d.user_id;
      CONTINUE WHEN NOT FOUND;
      PERFORM 1 FROM personas_user u WHERE u.id = d.user_id AND u.is_active;
      CONTINUE WHEN NOT FOUND;
    END IF;
    CASE pointer
{pointers}
    END CASE;
    CONTINUE WHEN NOT {erasures};
    INSERT INTO prompts_ledgerentry (id, {columns}) VALUES (d.id, {values});
    ledger_id := d.id;
    ledger_seal := d.seal;
    RETURN NEXT;
  END LOOP;
END $function$
"""
POINTER_TEMPLATE = """    WHEN '{pointer}' THEN
{checks}"""
CHECK_TEMPLATE = """      PERFORM 1 FROM {table} {alias} WHERE {alias}.workspace_id = ws AND {condition};
      CONTINUE WHEN NOT FOUND;"""


def build_fetch_function() -> list[str]:
    """Return the statements that create the function and let Citus call it on the node of the workspace."""
    types = {"id": "bigint"} | STORED_COLUMNS | CHECKED_COLUMNS
    key = KEY_CONDITION.format(same_scopes=SCOPES_CONDITIONS["postgresql"])
    function = FUNCTION_TEMPLATE.format(
        name=FETCH_FUNCTION,
        types=", ".join(f"{name} {kind}" for name, kind in types.items()),
        clock=f"({CLOCK_CONDITION.format(max_skew='max_skew')})",
        key=key,
        bot=BOT_CONDITION,
        creator=CREATOR_CONDITION,
        pointers="\n".join(build_pointer_case(pointer) for pointer in POINTER_CHECKS),
        erasures=f"({ERASURES_CONDITION.format(workspace='ws')})",
        columns=", ".join(STORED_COLUMNS),
        values=", ".join("ws" if name == "workspace_id" else f"d.{name}" for name in STORED_COLUMNS),
    )
    signature = f"{FETCH_FUNCTION}({ARGUMENT_TYPES})"
    return [
        f"DROP FUNCTION IF EXISTS {signature}",
        function,
        f"SELECT create_distributed_function('{signature}', 'ws', 'prompts_ledgerentry')",
    ]


def build_pointer_case(pointer: str) -> str:
    checks = "\n".join(build_check(check) for check in list_table_checks(pointer))
    return POINTER_TEMPLATE.format(pointer=pointer, checks=checks)


def build_check(check: TableCheck) -> str:
    return CHECK_TEMPLATE.format(table=check.table, alias=check.alias, condition=check.condition)
