"""Limits of a request's time: slow bodies, slow readers and slow statements (decision 0018)."""
