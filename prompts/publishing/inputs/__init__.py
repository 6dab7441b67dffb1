"""Collect the inputs of prompts from database records and discovered files.

This is the only package that imports both the database models and prompts/assembly.
"""

from prompts.publishing.inputs.collect import CollectedInputs, DraftRecord, InputCollector, collect_inputs
from prompts.publishing.inputs.load import LoadedRows

__all__ = ["CollectedInputs", "DraftRecord", "InputCollector", "LoadedRows", "collect_inputs"]
