"""Memories: records, board, pages and API."""
