"""Which labels a key can be limited to: told by the app that keeps them, which this one does not know."""

from collections.abc import Callable, Iterable

from personas.models import Workspace

# These two every prompt has or will have.
ALWAYS = ("latest", "production")
SOURCES: list[Callable[[Workspace], Iterable[str]]] = []


def labels_in(workspace: Workspace) -> list[str]:
    return sorted({*ALWAYS, *(name for source in SOURCES for name in source(workspace))})
