"""The journal of endings: revocations, removals and erasures, in a signed file outside of the database."""
