"""Records and last good files → the inputs of prompts: the only place where models and assembly meet."""

from prompts.gathering.loading import Loaded
from prompts.gathering.shelf import Draft, Gathered, Shelf, gather

__all__ = ["Draft", "Gathered", "Loaded", "Shelf", "gather"]
