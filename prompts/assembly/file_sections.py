"""Files put into a prompt whole, each under its own heading; what is only a note to editors stays out."""

import re
from collections.abc import Sequence
from dataclasses import replace

from prompts.assembly.inputs import ContextFile, PromptInputs
from prompts.assembly.sections import file_origin, fitted, listed
from prompts.assembly.segments import Piece, Pieces
from prompts.assembly.text import on_one_line

COMMENT = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)
# The two that the data directory knows, in their order; any other stands behind them.
PLACES = {"AGENTS.md": 0, "TOOLS.md": 1}


def project_files(inputs: PromptInputs) -> Pieces:
    """Context files as they were discovered, outermost first: what is nearest to the work speaks last."""
    files = fitted(speaking(inputs.context_files), inputs.limits.per_file, inputs.limits.all_files)
    return under_headings([(file.path, file, text) for file, text in files])


def workspace_files(inputs: PromptInputs) -> Pieces:
    """The files of the data directory by name, within what the context files left of the allowance."""
    if not inputs.workspace_files:
        return ()
    found = speaking(inputs.context_files)
    both = [*found, *own_files(inputs.workspace_files)]
    files = fitted(both, inputs.limits.per_file, inputs.limits.all_files)[len(found) :]
    return under_headings([(name_of(file), file, text) for file, text in files])


def own_files(files: Sequence[ContextFile]) -> list[ContextFile]:
    """In their order, without the comments they open with; an emptied one is left out."""
    ordered = sorted(files, key=lambda file: PLACES.get(name_of(file), len(PLACES)))
    return speaking([without_comments(file) if "<!--" in file.text else file for file in ordered])


def without_comments(file: ContextFile) -> ContextFile:
    """The file from where it begins to speak; a comment that never ends is taken for text."""
    start = 0
    while comment := COMMENT.match(file.text, start):
        start = comment.end()
    return replace(file, text=file.text[start:]) if start else file


def under_headings(files: Sequence[tuple[str, ContextFile, str]]) -> Pieces:
    return listed(
        [Piece(f"### {on_one_line(name)}\n\n{text}", file_origin(file)) for name, file, text in files], "\n\n"
    )


def cut_files(inputs: PromptInputs, own: Sequence[ContextFile] = ()) -> list[str]:
    """A line for the report about every file that does not go in whole."""
    files, limits = (*inputs.context_files, *own), inputs.limits
    sizes = [len(file.text) for file in files]
    # Asked first, for it nearly always holds.
    if not sizes or (max(sizes) <= limits.per_file and sum(sizes) <= limits.all_files):
        return []
    both = [*speaking(inputs.context_files), *own_files(own)]
    return [
        f"{file.path}: only a part of its {len(file.text):,} characters is told."
        for file, text in fitted(both, limits.per_file, limits.all_files)
        if text is not file.text
    ]


def speaking(files: Sequence[ContextFile]) -> list[ContextFile]:
    """Files with at least a word in them."""
    return [file for file in files if file.text and not file.text.isspace()]


def name_of(file: ContextFile) -> str:
    return file.path.rpartition("/")[2]
