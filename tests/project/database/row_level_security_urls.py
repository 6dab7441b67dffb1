"""Test views with queries that do not filter by workspace, in addition to the URLs of the product."""

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, JsonResponse
from django.urls import include, path

from personas.tenancy.middleware import WorkspaceRequest


def visible_rows() -> dict[str, list[str]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT slug FROM personas_agent ORDER BY slug")
        agents = [slug for (slug,) in cursor.fetchall()]
        cursor.execute("SELECT slug FROM personas_workspace ORDER BY slug")
        return {"agents": agents, "workspaces": [slug for (slug,) in cursor.fetchall()]}


def inside(request: WorkspaceRequest) -> JsonResponse:
    return JsonResponse(visible_rows())


@login_not_required
def outside(request: HttpRequest) -> JsonResponse:
    return JsonResponse(visible_rows())


def into(request: WorkspaceRequest, other: int) -> JsonResponse:
    """Insert a row for another workspace, bypassing our own checks."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO personas_erasure "
                "(workspace_id, kind, object_id, reason, digests, versions, author_label, at) "
                "VALUES (%s, 'memory', 1, '', '[]', '[]', '', now())",
                [other],
            )
    except DatabaseError as error:
        return JsonResponse({"refused": str(error).partition("\n")[0], **visible_rows()})
    return JsonResponse({"refused": ""})


def taken(request: WorkspaceRequest, other: int) -> JsonResponse:
    """Update the rows of all workspaces that can be reached."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE personas_agent SET name = 'Taken'")
        changed = cursor.rowcount
        cursor.execute("UPDATE personas_agent SET name = 'Taken' WHERE workspace_id = %s", [other])
        return JsonResponse({"changed": changed, "foreign": cursor.rowcount})


urlpatterns = [
    path("w/<slug:workspace>/raw/", inside),
    path("w/<slug:workspace>/raw/into/<int:other>/", into),
    path("w/<slug:workspace>/raw/taken/<int:other>/", taken),
    path("raw/", outside),
    path("", include("project.urls")),
]
