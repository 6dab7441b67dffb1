"""Prometheus metrics of the running product; they contain no name, text or id of a workspace."""
