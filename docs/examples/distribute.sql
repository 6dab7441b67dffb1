-- Gives every key of every tenant table its workspace_id in front, so that PostgreSQL with Citus can spread the tables
-- over machines by workspace. Read docs/scaling.md first: it is one way, wants a window in which nothing writes, and on
-- PostgreSQL alone brings nothing. The first part is run by a test on plain PostgreSQL; the second needs Citus.
--
--   psql -v ON_ERROR_STOP=1 -1 -f docs/examples/distribute.sql "$DATABASE_URL"

-- Asked across workspaces, and few: every machine gets all of them, and their keys stay as they are.
CREATE TEMPORARY TABLE everywhere (name regclass) ON COMMIT DROP;
INSERT INTO everywhere VALUES
    ('personas_workspace'), ('personas_user'), ('personas_membership'), ('personas_invitation'), ('personas_apikey');

CREATE TEMPORARY TABLE tenant ON COMMIT DROP AS
SELECT c.oid::regclass AS name
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND c.oid NOT IN (SELECT name FROM everywhere);

-- Links between tenant tables: down now, up again at the end with the workspace on both sides.
CREATE TEMPORARY TABLE link ON COMMIT DROP AS
SELECT k.conname, k.conrelid::regclass AS source, k.confrelid::regclass AS target, a.attname AS field
FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
WHERE k.contype = 'f' AND cardinality(k.conkey) = 1 AND k.conparentid = 0
    AND k.conrelid IN (SELECT name FROM tenant) AND k.confrelid IN (SELECT name FROM tenant);

-- Primary keys, uniquenesses, and unique indexes with a condition.
CREATE TEMPORARY TABLE key ON COMMIT DROP AS
SELECT x.indrelid::regclass AS source, i.relname AS name, k.contype,
    regexp_replace(pg_get_indexdef(i.oid), 'USING btree \(', 'USING btree (workspace_id, ') AS definition,
    (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY array_position(x.indkey::int2[], a.attnum))
     FROM pg_attribute a WHERE a.attrelid = x.indrelid AND a.attnum = ANY (x.indkey)) AS fields
FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_attribute w ON w.attrelid = x.indrelid AND w.attname = 'workspace_id'
LEFT JOIN pg_constraint k ON k.conindid = i.oid AND k.contype IN ('p', 'u')
WHERE x.indisunique AND x.indkey[0] <> w.attnum AND x.indrelid IN (SELECT name FROM tenant);

DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT * FROM link LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.source, one.conname);
    END LOOP;
    FOR one IN SELECT * FROM key LOOP
        IF one.contype IS NULL THEN
            EXECUTE format('DROP INDEX %I', one.name);
            EXECUTE one.definition;
        ELSE
            EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.source, one.name);
            EXECUTE format(
                'ALTER TABLE %s ADD CONSTRAINT %I %s (workspace_id, %s)', one.source, one.name,
                CASE one.contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END, one.fields);
        END IF;
    END LOOP;
END
$$;

-- With Citus, take the next three lines in. Tables that only grow are guarded by triggers, which it wants to be allowed.
-- SET LOCAL citus.enable_unsafe_triggers TO on;
-- SELECT create_reference_table(name) FROM everywhere;
-- SELECT create_distributed_table(name, 'workspace_id') FROM tenant;

DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT * FROM link LOOP
        EXECUTE format(
            'ALTER TABLE %s ADD CONSTRAINT %I FOREIGN KEY (workspace_id, %I) REFERENCES %s (workspace_id, id) '
            'DEFERRABLE INITIALLY DEFERRED', one.source, one.conname, one.field, one.target);
    END LOOP;
END
$$;
