"""Lists every route from the URL resolver, so that no new one is left out."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from tests.isolation.api_walk import list_operation_views

PARAMETER = re.compile(r"\(\?P<(\w+)>[^)]*\)|<(?:\w+:)?(\w+)>")


@dataclass(frozen=True)
class Route:
    """One URL pattern and its view."""

    name: str
    pattern: str
    view: Callable[..., Any]

    @cached_property
    def parameters(self) -> list[str]:
        return [one or other for one, other in PARAMETER.findall(self.pattern)]

    @property
    def is_inside(self) -> bool:
        """Whether it belongs to a workspace."""
        return "workspace" in self.parameters

    def path(self, values: Mapping[str, str]) -> str:
        plain = re.sub(r"(^|(?<=/))\^|\$$", "", self.pattern)
        return "/" + PARAMETER.sub(lambda found: values[found[1] or found[2]], plain)


def all_routes() -> list[Route]:
    """All routes except API operations, which have their own matrix."""
    operations = {id(view) for view in list_operation_views()}
    return [route for route in _walk(get_resolver()) if id(route.view) not in operations]


def _walk(resolver: URLResolver, before: str = "", spaces: tuple[str, ...] = ()) -> Iterator[Route]:
    for entry in resolver.url_patterns:
        pattern = before + str(entry.pattern)
        if isinstance(entry, URLPattern):
            # A route without a name is identified by its pattern.
            name = ":".join([*spaces, entry.name]) if entry.name else pattern
            yield Route(name, pattern, entry.callback)
        else:
            space = (entry.namespace,) if entry.namespace else ()
            yield from _walk(entry, pattern, spaces + space)
