"""Conditional requests: 304 for what the client has, 412 for what has changed, and PUT that creates."""

from typing import Any

import pytest

from personas.api import etags
from personas.models import Tool, Workspace
from personas.records.services import edit_record
from tests.api_client import Api
from tests.factories import BY, make_agent, make_soul, make_tool

pytestmark = pytest.mark.django_db
MERGE_PATCH = "application/merge-patch+json"


# --- reads ---------------------------------------------------------------------------------------------


def test_a_record_that_the_client_has_is_not_sent_again(admin: Api, workspace: Workspace) -> None:
    path = f"souls/{make_soul(workspace).slug}"
    first = admin.get(path)
    for tags in (first["ETag"], f'"x", {first["ETag"]}', f"W/{first['ETag']}", "*"):
        again = admin.get(path, If_None_Match=tags)
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
        assert "Content-Type" not in again
        assert again["Cache-Control"] == "private, no-cache"
    assert admin.call("HEAD", path, If_None_Match=first["ETag"]).status_code == 304
    assert admin.get(path, If_None_Match='"other"').status_code == 200
    assert admin.get(f"{path}?fields=slug", If_None_Match=first["ETag"]).status_code == 200


def test_a_change_of_the_record_is_sent(admin: Api, workspace: Workspace) -> None:
    path = f"souls/{make_soul(workspace).slug}"
    first = admin.get(path)
    assert admin.patch(path, {"text": "Be brave."}, first["ETag"]).status_code == 200
    assert admin.get(path, If_None_Match=first["ETag"]).json()["text"] == "Be brave."


def rename_tool_of_agent(admin: Api, workspace: Workspace) -> tuple[str, str]:
    """Rename a tool of an agent, whose own revision stays the same; return path and former ETag."""
    tool: Tool = make_tool(workspace, "lamp")
    agent = make_agent(workspace, "pilot", tools=[tool])
    etag = admin.get("agents/pilot")["ETag"]
    edit_record(tool, {"name": "torch"}, expected=tool.revision, by=BY)
    agent.refresh_from_db()
    return f"agents/{agent.slug}", etag


def test_a_change_of_a_linked_record_is_sent_and_is_no_conflict(admin: Api, workspace: Workspace) -> None:
    path, etag = rename_tool_of_agent(admin, workspace)
    assert admin.get(path, If_None_Match=etag).json()["tools"] == ["torch"]
    assert admin.patch(path, {"description": "Flies."}, etag).status_code == 200


def test_an_etag_of_the_revision_alone_is_detected(
    admin: Api, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etags, "sha256", lambda _: type("", (), {"hexdigest": lambda self: "0" * 64})())
    with pytest.raises(TypeError):  # The 304 has no body.
        test_a_change_of_a_linked_record_is_sent_and_is_no_conflict(admin, workspace)


# --- PATCH ---------------------------------------------------------------------------------------------


def test_a_patch_may_be_a_merge_patch(admin: Api, workspace: Workspace) -> None:
    path = f"souls/{make_soul(workspace).slug}"
    changed = admin.call("PATCH", path, {"text": "Be kind."}, content_type=MERGE_PATCH, If_Match="*")
    assert (changed.status_code, changed.json()["text"]) == (200, "Be kind.")
    other = "application/json-patch+json"
    refused = admin.call("PATCH", path, {"text": "x"}, content_type=other, If_Match="*")
    assert refused.status_code == 415
    assert refused["Accept-Patch"] == f"{MERGE_PATCH}, application/json"
    assert admin.call("POST", "souls", {"name": "x"}, content_type=MERGE_PATCH).status_code == 415
    options: Any = admin.call("OPTIONS", path)
    assert (options.status_code, options["Accept-Patch"]) == (405, f"{MERGE_PATCH}, application/json")
