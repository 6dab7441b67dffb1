"""Collect prompt inputs from records and effective files; the only package that uses models and assembly."""

from prompts.inputs.collect import CollectedInputs, DraftRecord, InputCollector, collect_inputs
from prompts.inputs.load import LoadedRows

__all__ = ["CollectedInputs", "DraftRecord", "InputCollector", "LoadedRows", "collect_inputs"]
