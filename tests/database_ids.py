"""Start the ids of each table in a range of its own, so that no test depends on the tests before it.

PostgreSQL does not roll sequences back: the ids of a test's rows depend on how many rows earlier tests
created. With small ids, a made-up number is sooner or later that of a row, and rows of two kinds share one.
"""

from django.db import connection

# Above the numbers that tests make up, and of seven digits.
FIRST_ID = 1_000_001
IDS_PER_TABLE = 100_000
SQL = """
    SELECT setval(format('%%I.%%I', schemaname, sequencename)::regclass,
                  %s + %s * (row_number() OVER (ORDER BY sequencename) - 1), false)
    FROM pg_sequences WHERE schemaname = current_schema()
"""


def separate_ids() -> None:
    with connection.cursor() as cursor:
        cursor.execute(SQL, [FIRST_ID, IDS_PER_TABLE])
