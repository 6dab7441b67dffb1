"""Proofs of the promises (docs/promises.md) at full size, under load and failures."""

# Environment variable: the fault that tests/promises/server_faults.py plants in a server.
FAULT = "DRAMATIS_PLANTED_FAULT"
# Environment variable: keep the product's rate limits in that server.
REAL_RATE_LIMITS = "TEST_REAL_RATE_LIMITS"
# Addresses that tests/promises/server_faults.py adds to a server.
SLOW_STATEMENT_PATH, LARGE_STREAM_PATH = "/slow-statement", "/large-stream"
# Statements that take a minute or more, by database.
SLOW_STATEMENTS = {
    "postgresql": "SELECT pg_sleep(60)",
    # About a minute on a fast machine.
    "sqlite": "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 400000000) "
    "SELECT count(*) FROM n",
}
# Environment variable: seconds that each verification of a chain takes at least, in workers of a test.
VERIFICATION_SECONDS = "TEST_VERIFICATION_SECONDS"
# Environment variable: names with their addresses, in workers of a test: `name=address,address|address`. Each
# resolution gets the next answer, and the last one from then on.
TEST_NAMES = "TEST_NAMES"
# Environment variable: the port of a mail server on this machine, for a server of a test. With it, names
# below SLOW_DOMAIN are resolved after SLOW_NAME_SECONDS.
TEST_MAIL_PORT = "TEST_MAIL_PORT"
SLOW_DOMAIN, SLOW_NAME_SECONDS = "slow.example", 20.0
# The URL of a receiver of webhooks that never answers.
RECEIVER = "FAIRNESS_RECEIVER"
