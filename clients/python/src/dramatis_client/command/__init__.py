"""The `dramatis` command: what the client can do, from a shell."""

from dramatis_client.command.parser import build_parser, main

__all__ = ["build_parser", "main"]
