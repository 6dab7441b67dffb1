"""Files put into a prompt whole, each under its own heading; what is only a note to editors stays out."""

import re
from collections.abc import Sequence
from dataclasses import replace

from prompts.assembly.inputs import ContextFile, PromptInputs
from prompts.assembly.sections import fit_files, get_file_origin, join_chunks
from prompts.assembly.segments import TextChunk, TextChunks
from prompts.assembly.text import collapse_lines

LEADING_COMMENT_PATTERN = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)
# The two that the data directory knows, in their order; any other stands behind them.
FILE_ORDER = {"AGENTS.md": 0, "TOOLS.md": 1}


def build_project_files(inputs: PromptInputs) -> TextChunks:
    """Context files as they were discovered, outermost first: what is nearest to the work speaks last."""
    files = fit_files(
        exclude_blank_files(inputs.context_files), inputs.limits.per_file, inputs.limits.all_files
    )
    return build_file_chunks([(file.path, file, text) for file, text in files])


def build_workspace_files(inputs: PromptInputs) -> TextChunks:
    """The files of the data directory by name, within what the context files left of the allowance."""
    if not inputs.workspace_files:
        return ()
    found = exclude_blank_files(inputs.context_files)
    both = [*found, *prepare_workspace_files(inputs.workspace_files)]
    files = fit_files(both, inputs.limits.per_file, inputs.limits.all_files)[len(found) :]
    return build_file_chunks([(get_file_name(file), file, text) for file, text in files])


def prepare_workspace_files(files: Sequence[ContextFile]) -> list[ContextFile]:
    """In their order, without the comments they open with; an emptied one is left out."""
    ordered = sorted(files, key=lambda file: FILE_ORDER.get(get_file_name(file), len(FILE_ORDER)))
    return exclude_blank_files(
        [remove_leading_comments(file) if "<!--" in file.text else file for file in ordered]
    )


def remove_leading_comments(file: ContextFile) -> ContextFile:
    """The file from where it begins to speak; a comment that never ends is taken for text."""
    start = 0
    while comment := LEADING_COMMENT_PATTERN.match(file.text, start):
        start = comment.end()
    return replace(file, text=file.text[start:]) if start else file


def build_file_chunks(files: Sequence[tuple[str, ContextFile, str]]) -> TextChunks:
    return join_chunks(
        [
            TextChunk(f"### {collapse_lines(name)}\n\n{text}", get_file_origin(file))
            for name, file, text in files
        ],
        "\n\n",
    )


def describe_truncated_files(inputs: PromptInputs, own: Sequence[ContextFile] = ()) -> list[str]:
    """A line for the report about every file that does not go in whole."""
    files, limits = (*inputs.context_files, *own), inputs.limits
    sizes = [len(file.text) for file in files]
    # Asked first, for it nearly always holds.
    if not sizes or (max(sizes) <= limits.per_file and sum(sizes) <= limits.all_files):
        return []
    both = [*exclude_blank_files(inputs.context_files), *prepare_workspace_files(own)]
    return [
        f"{file.path}: only a part of its {len(file.text):,} characters is told."
        for file, text in fit_files(both, limits.per_file, limits.all_files)
        if text is not file.text
    ]


def exclude_blank_files(files: Sequence[ContextFile]) -> list[ContextFile]:
    """Files with at least a word in them."""
    return [file for file in files if file.text and not file.text.isspace()]


def get_file_name(file: ContextFile) -> str:
    return file.path.rpartition("/")[2]
