"""Lists every API operation from the URL patterns, so that no new one is left out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern

from personas.api.operations import Operation
from personas.api.views import get_api_view
from project.api.urls import urlpatterns

V1 = "/api/v1/"
# URL values that match no row, by converter.
ABSENT = {
    "IntConverter": "987654321",
    "DigestConverter": "f" * 64,
    "SlugConverter": "no-such-row",
    "NameConverter": "no-such-row",
    "StringConverter": "no-such-row",
    "PathConverter": "no/such/row.md",
}


@dataclass(frozen=True)
class ApiEndpoint:
    """One HTTP method of one URL pattern."""

    method: str
    pattern: URLPattern
    operation: Operation

    @property
    def name(self) -> str:
        return str(self.pattern.name)

    def __str__(self) -> str:
        return f"{self.method} {self.name}"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """URL converters by parameter name."""
        return self.pattern.pattern.converters

    def absent(self, parameter: str, length: int) -> str:
        """A value that matches no row.

        Text is as long as the foreign value, because responses may quote it.
        """
        value = ABSENT[type(self.parameters[parameter]).__name__]
        return value if value.isdigit() else value.ljust(length, "x")[: max(length, 1)]

    def path(self, values: Mapping[str, str]) -> str:
        route = str(self.pattern.pattern)
        for name in self.parameters:
            before, _, rest = route.partition("<")
            _, _, after = rest.partition(">")
            route = f"{before}{values[name]}{after}"
        return V1 + route


def operations_at(pattern: URLPattern) -> Mapping[str, Operation]:
    """The operations of a URL pattern; empty for pages about the API."""
    view = get_api_view(pattern)
    operations: Mapping[str, Operation] = (
        view.operations if view else getattr(pattern.callback, "operations", {})
    )
    return operations


def all_endpoints() -> list[ApiEndpoint]:
    return [
        ApiEndpoint(method, pattern, operation)
        for pattern in urlpatterns
        for method, operation in operations_at(pattern).items()
    ]


def list_operation_views() -> list[object]:
    """The views with API operations, which the API matrix covers; the other views are pages."""
    return [pattern.callback for pattern in urlpatterns if operations_at(pattern)]
