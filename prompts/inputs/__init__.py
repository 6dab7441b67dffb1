"""Records and last good files → the inputs of prompts: the only place where models and assembly meet."""

from prompts.inputs.collect import CollectedInputs, DraftRecord, InputCollector, collect_inputs
from prompts.inputs.load import LoadedRows

__all__ = ["CollectedInputs", "DraftRecord", "InputCollector", "LoadedRows", "collect_inputs"]
