"""Records and last good files → the inputs of prompts: the only place where models and assembly meet."""

from prompts.inputs.collect import Draft, Gathered, Shelf, gather
from prompts.inputs.load import Loaded

__all__ = ["Draft", "Gathered", "Loaded", "Shelf", "gather"]
