"""Storage for the data that calls send: long values by digest, and a daily quota of bytes."""
