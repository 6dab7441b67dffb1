"""Proofs of the promises (docs/promises.md) at full size, under load and failures."""

# Environment variable: the fault that tests/promises/server_faults.py plants in a server.
FAULT = "DRAMATIS_PLANTED_FAULT"
# Addresses that tests/promises/server_faults.py adds to a server.
SLOW_STATEMENT_PATH, LARGE_STREAM_PATH = "/slow-statement", "/large-stream"
