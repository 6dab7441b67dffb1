"""Include context files and workspace files in a prompt, each under its own heading."""

import re
from collections.abc import Sequence
from dataclasses import replace

from prompts.assembly.inputs import ContextFileInput, PromptInputs
from prompts.assembly.sections import fit_files, get_file_origin, join_chunks
from prompts.assembly.segments import TextChunk, TextChunks
from prompts.assembly.text import collapse_lines

LEADING_COMMENT_PATTERN = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)
# Workspace files with these names come first, in this order.
FILE_ORDER = {"AGENTS.md": 0, "TOOLS.md": 1}


def build_project_files(inputs: PromptInputs) -> TextChunks:
    """Include the context files in order of discovery: outermost directory first, nearest file last."""
    files = fit_files(
        exclude_blank_files(inputs.context_files), inputs.limits.per_file, inputs.limits.all_files
    )
    return build_file_chunks([(file.path, file, text) for file, text in files])


def build_workspace_files(inputs: PromptInputs) -> TextChunks:
    """Include the workspace files under their names, within the total limit that context files leave over."""
    if not inputs.workspace_files:
        return ()
    context_files = exclude_blank_files(inputs.context_files)
    all_files = [*context_files, *prepare_workspace_files(inputs.workspace_files)]
    files = fit_files(all_files, inputs.limits.per_file, inputs.limits.all_files)[len(context_files) :]
    return build_file_chunks([(get_file_name(file), file, text) for file, text in files])


def prepare_workspace_files(files: Sequence[ContextFileInput]) -> list[ContextFileInput]:
    """Sort the files, remove the comments at their start, and drop files that have no other text."""
    ordered = sorted(files, key=lambda file: FILE_ORDER.get(get_file_name(file), len(FILE_ORDER)))
    return exclude_blank_files(
        [remove_leading_comments(file) if "<!--" in file.text else file for file in ordered]
    )


def remove_leading_comments(file: ContextFileInput) -> ContextFileInput:
    """Remove HTML comments from the start of a file; an unclosed comment counts as text."""
    start = 0
    while comment := LEADING_COMMENT_PATTERN.match(file.text, start):
        start = comment.end()
    return replace(file, text=file.text[start:]) if start else file


def build_file_chunks(files: Sequence[tuple[str, ContextFileInput, str]]) -> TextChunks:
    return join_chunks(
        [
            TextChunk(f"### {collapse_lines(name)}\n\n{text}", get_file_origin(file))
            for name, file, text in files
        ],
        "\n\n",
    )


def describe_truncated_files(
    inputs: PromptInputs, workspace_files: Sequence[ContextFileInput] = ()
) -> list[str]:
    """Return a problem message for every file that the limits truncate."""
    files, limits = (*inputs.context_files, *workspace_files), inputs.limits
    sizes = [len(file.text) for file in files]
    # Fast path: nearly always everything fits.
    if not sizes or (max(sizes) <= limits.per_file and sum(sizes) <= limits.all_files):
        return []
    nonblank_files = [*exclude_blank_files(inputs.context_files), *prepare_workspace_files(workspace_files)]
    return [
        f"{file.path}: only a part of its {len(file.text):,} characters is in the prompt."
        for file, text in fit_files(nonblank_files, limits.per_file, limits.all_files)
        if text is not file.text
    ]


def exclude_blank_files(files: Sequence[ContextFileInput]) -> list[ContextFileInput]:
    """Return the files that contain more than whitespace."""
    return [file for file in files if file.text and not file.text.isspace()]


def get_file_name(file: ContextFileInput) -> str:
    # A path on Windows has backslashes.
    return file.path[max(file.path.rfind("/"), file.path.rfind("\\")) + 1 :]
