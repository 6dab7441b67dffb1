"""Prometheus metrics of the running product. They contain no names, texts or ids of workspaces."""
