"""Records and last good files → the inputs of prompts: the only place where models and assembly meet."""

from prompts.gathering.shelf import Draft, Gathered, gather

__all__ = ["Draft", "Gathered", "gather"]
