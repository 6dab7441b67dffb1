"""The labels of a workspace by name."""

from personas.models import Workspace
from prompts.models import PromptLabel


def label_names(workspace: Workspace) -> set[str]:
    """Those that point somewhere now."""
    rows = PromptLabel.objects.in_workspace(workspace).order_by("name")
    return set(rows.values_list("name", flat=True).distinct())
