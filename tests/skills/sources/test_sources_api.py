"""The API of sources: create, edit, refresh, and push files."""

# ruff: noqa: F811  # fixtures are imported, and asked for by name

import os
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from personas.api_keys.format import BOT
from personas.models import Agent, User, Workspace
from skills.discovery.harnesses import DiscoveryCaps
from skills.models import AgentContext, AllowedFolder, ContextFile, PushedFile, RefreshRun, Source
from skills.refresh.runs import get_refresh_progress
from tests.factories import join, make_user, refreshed
from tests.personas.api.response_checker import TrueApi, without_id
from tests.personas.api.skills_stage import (  # noqa: F401  # fixtures
    GOOD,
    POISON,
    SKILL_PATH,
    admin,
    bot,
    file_in,
    foreign,
    key_for,
    make_pushed,
    mira,
    narrow_admin,
    narrow_bot,
    nils,
    push_and_refresh,
    pushed,
    read_source,
    run_refresh,
    shelf,
)
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def allowed_folder(workspace: Workspace, tmp_path: Path, settings: Any) -> AllowedFolder:
    settings.DRAMATIS_SOURCE_ROOTS = [str(tmp_path)]
    created = AllowedFolder(workspace=workspace, path=str(tmp_path), note="The shelf")
    created.save()
    return created


def push(api: TrueApi, source: Source, files: dict[str, str], **more: Any) -> Any:
    entries = [{"path": path, "text": text} for path, text in files.items()]
    return api.post(f"sources/{source.slug}/files:push", {"files": entries, **more})


def stored(source: Source) -> dict[str, bytes]:
    rows = PushedFile.objects.in_workspace(source.workspace_id).filter(source=source)
    return {row.path: bytes(row.content.data or b"") for row in rows.select_related("content")}


# --- records -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_source_of_a_granted_folder_lives_its_life(admin: TrueApi, allowed_folder: AllowedFolder) -> None:
    assert admin.get("allowed-folders").json()["items"] == [
        {"path": allowed_folder.path, "note": "The shelf"}
    ]
    created = admin.post(
        "sources", {"name": "Shelf", "allowed_folder": allowed_folder.path, "message": "Ours"}
    )
    assert created.status_code == 201, created.content
    response = created.json()
    assert (response["slug"], response["kind"], response["allowed_folder"], response["refresh_minutes"]) == (
        "shelf",
        "folder",
        allowed_folder.path,
        15,
    )
    assert response["last_run"] is not None
    assert admin.get("sources/shelf/revisions").json()["items"][0]["message"] == "Ours"
    changed = admin.patch("sources/shelf", {"harnesses": ["opal"], "approval": "manual"}, created["ETag"])
    assert (changed.json()["harnesses"], changed.json()["approval"]) == (["opal"], "manual")
    back = admin.call("POST", "sources/shelf/revisions/1:restore", If_Match=changed["ETag"])
    assert back.json()["approval"] == "manual"
    assert admin.delete("sources/shelf", back["ETag"]).status_code == 204
    assert admin.post("sources/shelf:refresh").json()["code"] == "archived"
    assert admin.post("sources/shelf:restore").json()["is_archived"] is False


def test_an_edit_requests_a_refresh(admin: TrueApi, pushed: Source, workspace: Workspace) -> None:
    before = RefreshRun.objects.in_workspace(workspace).count()
    changed = admin.patch(f"sources/{pushed.slug}", {"name": "Renamed"}, f'"{pushed.revision}"')
    assert RefreshRun.objects.in_workspace(workspace).count() == before + 1
    assert changed.json()["last_run"] == RefreshRun.objects.in_workspace(workspace).latest("pk").pk
    run_refresh(changed.json()["last_run"], workspace.pk)
    admin.patch(f"sources/{pushed.slug}", {"name": "Renamed"}, changed["ETag"])
    assert RefreshRun.objects.in_workspace(workspace).count() == before + 1


@pytest.mark.parametrize(
    ("values", "pointer"),
    [
        ({"kind": "folder"}, "/allowed_folder"),
        ({"kind": "cloud"}, "/kind"),
        ({"kind": "pushed", "folder": "a"}, "/folder"),
        ({"kind": "pushed", "location": "srv/app"}, "/location"),
        ({"kind": "pushed", "location": "/srv/../app"}, "/location"),
        ({"kind": "pushed", "refresh_minutes": 5}, "/refresh_minutes"),
        ({"kind": "pushed", "harnesses": []}, "/harnesses"),
        ({"kind": "pushed", "harnesses": ["none"]}, "/harnesses/0"),
        ({"kind": "pushed", "refresh_minutes": 0}, "/refresh_minutes"),
        ({"kind": "pushed", "source_kind": "folder"}, "/source_kind"),
        ({"allowed_folder": "/no/such"}, "/allowed_folder"),
    ],
)
def test_an_invalid_value_is_reported_with_its_field(
    admin: TrueApi, values: dict[str, Any], pointer: str
) -> None:
    refused = admin.post("sources", {"name": "Shelf"} | values)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, pointer)


def test_a_source_keeps_its_kind(admin: TrueApi, pushed: Source) -> None:
    response = admin.patch(f"sources/{pushed.slug}", {"kind": "folder"}, "*")
    assert response.json()["errors"][0]["pointer"] == "/kind"
    put = admin.put(f"sources/{pushed.slug}", {"name": "Pushed"}, "*").json()
    assert (put["kind"], put["allowed_folder"], put["refresh_minutes"]) == ("pushed", None, None)


def test_rules_that_agents_go_by_are_not_taken_from_a_source(
    admin: TrueApi, pushed: Source, mira: Agent
) -> None:
    read_source(mira, pushed)
    refused = admin.patch(f"sources/{pushed.slug}", {"harnesses": ["plain"]}, "*")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/harnesses")
    assert admin.delete(f"sources/{pushed.slug}", "*").json()["code"] == "in_use"


@pytest.mark.hard
def test_sources_grants_and_runs_of_other_workspaces_are_not_found(
    admin: TrueApi, foreign: Source, pushed: Source, allowed_folder: AllowedFolder, elsewhere: Workspace
) -> None:
    AllowedFolder(workspace=elsewhere, path=f"{allowed_folder.path}/theirs").save()
    one, other = (
        admin.post("sources", {"name": "A", "allowed_folder": f"{allowed_folder.path}/{name}"})
        for name in ("theirs", "no")
    )
    assert without_id(one) == without_id(other)
    requested = [
        ("GET", "", None),
        ("PATCH", "", {"name": "Mine"}),
        ("DELETE", "", None),
        ("POST", ":refresh", {}),
        ("POST", ":restore", {}),
        ("GET", "/runs", None),
        ("GET", "/files", None),
        ("POST", "/files:push", {"files": [{"path": "AGENTS.md", "text": "Mine."}]}),
        ("PUT", "/files/AGENTS.md", {"text": "Mine."}),
        ("DELETE", "/files/AGENTS.md", None),
    ]
    for method, more, body in requested:
        answers = [
            without_id(admin.call(method, f"sources/{slug}{more}", body, If_Match="*"))
            for slug in (foreign.slug, "no-such")
        ]
        assert answers[0] == answers[1]
        assert answers[0][0] == 404
    theirs = RefreshRun.objects.in_workspace(elsewhere).latest("pk").pk
    runs = [without_id(admin.get(f"sources/{pushed.slug}/runs/{key}")) for key in (theirs, 10**9, 2**63, 0)]
    assert runs == [runs[0]] * 4
    assert stored(foreign)["AGENTS.md"] == POISON.encode()


def test_only_those_who_manage_sources_make_them(
    key_for: Callable[..., TrueApi], workspace: Workspace, bob: User, bot: TrueApi, pushed: Source
) -> None:
    editor = key_for(workspace, bob)
    viewer = make_user("Vera")
    join(workspace, viewer, "viewer")
    for caller in (editor, bot, key_for(workspace, viewer)):
        assert caller.post("sources", {"name": "A", "kind": "pushed"}).status_code == 403
        assert caller.delete(f"sources/{pushed.slug}", "*").status_code == 403
        assert caller.get("allowed-folders").status_code == 403
        status = 403 if caller is bot else 200
        assert caller.get(f"sources/{pushed.slug}").status_code == status
    assert editor.post(f"sources/{pushed.slug}:refresh").status_code == 202
    assert bot.post(f"sources/{pushed.slug}:refresh").status_code == 403


def test_a_limited_key_sees_what_its_agents_read(
    narrow_admin: TrueApi, workspace: Workspace, pushed: Source, mira: Agent
) -> None:
    make_pushed(workspace, "Other")
    assert narrow_admin.get("sources").json()["items"] == []
    read_source(mira, pushed)
    assert [row["slug"] for row in narrow_admin.get("sources").json()["items"]] == [pushed.slug]
    assert narrow_admin.get("sources/other").status_code == 404
    assert narrow_admin.post(f"sources/{pushed.slug}:refresh").status_code == 202
    assert narrow_admin.post("sources", {"name": "A", "kind": "pushed"}).status_code == 403
    assert narrow_admin.patch(f"sources/{pushed.slug}", {"name": "Mine"}, "*").status_code == 403
    assert narrow_admin.delete(f"sources/{pushed.slug}", "*").status_code == 403
    assert narrow_admin.post(f"sources/{pushed.slug}:restore").status_code == 403
    assert (
        narrow_admin.call("POST", f"sources/{pushed.slug}/revisions/1:restore", If_Match="*").status_code
        == 403
    )
    assert narrow_admin.get("allowed-folders").status_code == 403


# --- refresh runs --------------------------------------------------------------------------------------


def test_a_refresh_is_requested_and_followed(
    admin: TrueApi, bot: TrueApi, pushed: Source, workspace: Workspace
) -> None:
    requested = admin.post(f"sources/{pushed.slug}:refresh")
    number = requested.json()["id"]
    assert (requested.status_code, requested["Location"]) == (
        202,
        f"/api/v1/sources/{pushed.slug}/runs/{number}",
    )
    assert requested.json()["status"] == "queued"
    run_refresh(number, workspace.pk)
    assert bot.get(requested["Location"]).json()["status"] == "done"
    page = bot.get(f"sources/{pushed.slug}/runs?limit=1").json()
    assert ([row["id"] for row in page["items"]], bool(page["next_cursor"])) == ([number], True)


@pytest.mark.slow
def test_a_held_refresh_is_shown_and_confirmed(
    admin: TrueApi, bot: TrueApi, narrow_admin: TrueApi, pushed: Source, workspace: Workspace
) -> None:
    read_source(Agent.objects.in_workspace(workspace).get(slug="mira"), pushed)
    names = [f"{name}/AGENTS.md" for name in "abcd"]
    run_refresh(push(bot, pushed, dict.fromkeys(names, GOOD)).json()["run"]["id"], workspace.pk)
    cut = push(bot, pushed, {"a/AGENTS.md": GOOD}, is_complete=True).json()["run"]["id"]
    run_refresh(cut, workspace.pk)
    run = bot.get(f"sources/{pushed.slug}/runs/{cut}").json()
    assert (run["status"], run["missing"], run["missing_paths"]) == ("held", 3, names[1:])
    assert admin.get(f"sources/{pushed.slug}").json()["held"] == {"run": cut, "missing": 3}
    assert [row["held"] for row in admin.get("sources").json()["items"] if row["held"]] == [
        {"run": cut, "missing": 3}
    ]
    assert file_in(pushed, "b/AGENTS.md").active is not None
    url = f"sources/{pushed.slug}:confirmRemoval"
    assert bot.post(url, {"run": cut}).status_code == 403
    assert narrow_admin.post(url, {"run": cut}).status_code == 403
    assert admin.post(url, {"run": cut + 1}).json()["code"] == "conflict"
    confirmed = admin.post(url, {"run": cut})
    assert (confirmed.status_code, confirmed.json()["cause"]) == (202, "confirmed")
    run_refresh(confirmed.json()["id"], workspace.pk)
    assert admin.get(f"sources/{pushed.slug}").json()["held"] is None
    assert file_in(pushed, "b/AGENTS.md").status == "missing"


def test_an_empty_run_does_not_hide_the_numbers_of_the_one_before(
    pushed: Source, workspace: Workspace, as_alice: Client
) -> None:
    push_and_refresh(pushed, {"AGENTS.md": GOOD, "docs/AGENTS.md": GOOD})
    url = f"/w/{workspace.slug}/sources/{pushed.slug}/"
    assert "It found no changes." not in as_alice.get(url).content.decode()
    first = get_refresh_progress(pushed).last_finished
    refreshed(pushed)
    progress = get_refresh_progress(pushed)
    assert first is not None
    assert progress.last_finished != first
    assert (progress.last_change, first.read) == (first, 2)
    page = as_alice.get(url).content.decode()
    assert "It found no changes. The numbers are those of the last refresh that did" in page
    assert "<dt>Read</dt><dd>2</dd>" in page


@pytest.mark.slow
def test_a_crowded_folder_is_named_in_the_run(
    admin: TrueApi, allowed_folder: AllowedFolder, tmp_path: Path, workspace: Workspace
) -> None:
    crowd = tmp_path / "crowd"
    crowd.mkdir()
    for number in range(DiscoveryCaps().folder_entries + 1):
        (crowd / f"{number}").touch()
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "AGENTS.md").write_text(GOOD)
    created = admin.post("sources", {"name": "Crowd", "allowed_folder": allowed_folder.path}).json()
    run_refresh(created["last_run"], workspace.pk)
    run = admin.get(f"sources/crowd/runs/{created['last_run']}").json()
    assert (run["status"], run["cut_folders"], run["seen"]) == ("done", ["crowd"], 1)
    assert [refusal["rule"] for refusal in run["refusals"]] == ["folder-entries"]


def test_hard_links_are_read_only_if_the_source_allows_them(
    admin: TrueApi, allowed_folder: AllowedFolder, tmp_path: Path, workspace: Workspace
) -> None:
    (tmp_path / "other.md").write_text(GOOD)
    os.link(tmp_path / "other.md", tmp_path / "AGENTS.md")
    created = admin.post("sources", {"name": "Shelf", "allowed_folder": allowed_folder.path})
    assert created.json()["allow_hard_links"] is False
    run = run_refresh(created.json()["last_run"], workspace.pk)
    assert [(refusal["path"], refusal["rule"]) for refusal in run.refusals] == [("AGENTS.md", "hard-link")]
    changed = admin.patch("sources/shelf", {"allow_hard_links": True}, created["ETag"]).json()
    assert run_refresh(changed["last_run"], workspace.pk).outcome == {"new": 1}
    refused = admin.post("sources", {"name": "P", "kind": "pushed", "allow_hard_links": True})
    assert refused.json()["errors"][0]["pointer"] == "/allow_hard_links"


# --- pushed files --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_bot_pushes_one_file_and_takes_it_away(bot: TrueApi, pushed: Source, workspace: Workspace) -> None:
    url = f"sources/{pushed.slug}/files/docs/AGENTS.md"
    first = bot.put(url, {"text": GOOD})
    assert (first.status_code, first.json()["stored"], first.json()["quarantined"]) == (202, 1, [])
    run_refresh(first.json()["run"]["id"], workspace.pk)
    assert file_in(pushed, "docs/AGENTS.md").status in {"new", "current"}
    again = bot.put(url, {"base64": b64encode(b"Be brief.\n").decode()})
    assert stored(pushed) == {"docs/AGENTS.md": b"Be brief.\n"}
    [row] = bot.get(f"sources/{pushed.slug}/files").json()["items"]
    assert (row["path"], row["size"]) == ("docs/AGENTS.md", 10)
    run_refresh(again.json()["run"]["id"], workspace.pk)
    gone = bot.call("DELETE", url)
    assert (gone.status_code, stored(pushed)) == (202, {})
    run_refresh(gone.json()["run"]["id"], workspace.pk)
    assert file_in(pushed, "docs/AGENTS.md").status == "missing"
    assert bot.call("DELETE", url).status_code == 404
    assert bot.call("DELETE", f"sources/{pushed.slug}/files/a%00b").status_code == 404


def test_if_match_prevents_overwriting_other_content(bot: TrueApi, pushed: Source) -> None:
    url = f"sources/{pushed.slug}/files/AGENTS.md"
    bot.put(url, {"text": GOOD})
    [row] = bot.get(f"sources/{pushed.slug}/files").json()["items"]
    assert bot.put(url, {"text": "Other."}, '"stale"').status_code == 412
    assert bot.call("DELETE", url, If_Match='"stale"').status_code == 412
    assert bot.put(url, {"text": "Other."}, f'"{row["digest"]}"').status_code == 202


def test_many_are_pushed_and_each_refusal_is_named(bot: TrueApi, pushed: Source) -> None:
    files = [
        {"path": "AGENTS.md", "text": GOOD},
        {"path": "../outside.md", "text": "No."},
        {"path": "docs/AGENTS.md", "text": POISON},
        {"path": "bad/AGENTS.md", "base64": "//4="},
        {"path": "large/AGENTS.md", "text": "x" * (256 * 1024 + 1)},
        {"path": "twice/AGENTS.md", "text": "One."},
        {"path": "twice/AGENTS.md", "text": "Two."},
        {"path": "photo.png", "base64": "AAAA"},
    ]
    response = bot.post(f"sources/{pushed.slug}/files:push", {"files": files})
    outcome = response.json()
    assert response.status_code == 202, response.content
    assert sorted(one["pointer"] for one in outcome["refused"]) == [
        f"/files/{index}" for index in (1, 4, 5, 6)
    ]
    assert (outcome["stored"], len(stored(pushed))) == (4, 4)
    [blocked] = outcome["quarantined"]
    assert (blocked["path"], {one["severity"] for one in blocked["findings"]} >= {"block"}) == (
        "docs/AGENTS.md",
        True,
    )
    assert [one["path"] for one in outcome["invalid"]] == ["bad/AGENTS.md"]
    assert "photo.png" in outcome["unused"][0]["reason"]
    run_refresh(outcome["run"]["id"], pushed.workspace_id)
    for path, status in (("docs/AGENTS.md", "quarantined"), ("bad/AGENTS.md", "invalid")):
        assert file_in(pushed, path).status == status


@pytest.mark.slow
def test_a_complete_push_lets_go_of_the_rest(bot: TrueApi, pushed: Source) -> None:
    push(bot, pushed, {"AGENTS.md": GOOD, "docs/AGENTS.md": GOOD})
    push(bot, pushed, {"AGENTS.md": "Now.\n"})
    assert set(stored(pushed)) == {"AGENTS.md", "docs/AGENTS.md"}
    push(bot, pushed, {"AGENTS.md": "Now.\n"}, is_complete=True)
    assert stored(pushed) == {"AGENTS.md": b"Now.\n"}


def test_a_path_that_conflicts_with_a_stored_file_is_refused(bot: TrueApi, pushed: Source) -> None:
    push(bot, pushed, {"AGENTS.md": GOOD})
    response = push(bot, pushed, {"docs/AGENTS.md": GOOD, "agents.MD": GOOD}).json()
    assert ([one["pointer"] for one in response["refused"]], response["stored"]) == (["/files/1"], 1)


def test_a_push_of_which_nothing_can_be_kept_is_refused(bot: TrueApi, pushed: Source) -> None:
    response = push(bot, pushed, {"/etc/passwd": "No.", "a\\b": "No."})
    assert (response.status_code, [one["pointer"] for one in response.json()["errors"]]) == (
        422,
        ["/files/0", "/files/1"],
    )
    one = bot.put(f"sources/{pushed.slug}/files/a%5Cb", {"text": "No."})
    assert (one.status_code, one.json()["errors"][0]["parameter"]) == (422, "path")
    assert stored(pushed) == {}


@pytest.mark.parametrize(
    "file",
    [
        {"path": "AGENTS.md"},
        {"path": "AGENTS.md", "text": "a", "base64": "AAAA"},
        {"path": "AGENTS.md", "base64": "not base64"},
        {"path": "AGENTS.md", "base64": "AAA"},
        {"path": "", "text": "a"},
        {"text": "a"},
        {"path": "AGENTS.md", "text": 7},
        {"path": "AGENTS.md", "text": "a", "mode": 7},
        "AGENTS.md",
    ],
)
def test_a_file_is_text_or_base64_and_nothing_else(bot: TrueApi, pushed: Source, file: Any) -> None:
    response = bot.post(f"sources/{pushed.slug}/files:push", {"files": [file]})
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"].startswith("/files/0")


def test_a_body_of_more_than_a_mebibyte_is_refused(bot: TrueApi, pushed: Source) -> None:
    files = {f"{number}/AGENTS.md": "x" * 250_000 for number in range(5)}
    response = push(bot, pushed, files)
    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")
    assert stored(pushed) == {}


def test_a_folder_takes_no_pushes(bot: TrueApi, admin: TrueApi, allowed_folder: AllowedFolder) -> None:
    admin.post("sources", {"name": "Shelf", "allowed_folder": allowed_folder.path})
    response = bot.put("sources/shelf/files/AGENTS.md", {"text": GOOD})
    assert (response.status_code, response.json()["code"]) == (409, "not_a_push_source")


def test_a_push_sent_twice_is_one_push(bot: TrueApi, pushed: Source) -> None:
    body = {"files": [{"path": "AGENTS.md", "text": GOOD}]}
    first = bot.post(f"sources/{pushed.slug}/files:push", body, Idempotency_Key="a")
    again = bot.post(f"sources/{pushed.slug}/files:push", body, Idempotency_Key="a")
    assert (again.content, again["Idempotency-Replayed"]) == (first.content, "true")


def test_a_limited_bot_pushes_only_where_its_agent_reads(
    narrow_bot: TrueApi, pushed: Source, mira: Agent, nils: Agent
) -> None:
    read_source(nils, pushed)
    url = f"sources/{pushed.slug}/files/AGENTS.md"
    assert narrow_bot.put(url, {"text": "Mine."}).status_code == 404
    assert push(narrow_bot, pushed, {"AGENTS.md": "Mine."}).status_code == 404
    assert narrow_bot.call("DELETE", url).status_code == 404
    assert stored(pushed) == {}
    read_source(mira, pushed)
    # The file would also be in prompts of Nils.
    assert narrow_bot.put(url, {"text": "Ours."}).status_code == 403
    AgentContext.objects.in_workspace(nils.workspace_id).filter(agent=nils).delete()
    assert narrow_bot.put(url, {"text": "Mine."}).status_code == 202


def test_a_bot_that_may_only_read_pushes_nothing(
    key_for: Callable[..., TrueApi], workspace: Workspace, alice: User, pushed: Source
) -> None:
    reader = key_for(workspace, alice, BOT, verbs=["read"])
    assert reader.put(f"sources/{pushed.slug}/files/AGENTS.md", {"text": "Mine."}).status_code == 403
    assert reader.get(f"sources/{pushed.slug}/files").status_code == 200


@pytest.mark.slow
def test_waived_content_is_not_listed_as_quarantined(admin: TrueApi, bot: TrueApi, pushed: Source) -> None:
    push_and_refresh(pushed, {"AGENTS.md": POISON})
    [blocked] = push(bot, pushed, {"AGENTS.md": POISON}).json()["quarantined"]
    file = ContextFile.objects.in_workspace(pushed.workspace_id).get(source=pushed)
    admin.post(f"context-files/{file.pk}:waive", {"digest": blocked["digest"], "reason": "A known sample."})
    assert push(bot, pushed, {"AGENTS.md": POISON}).json()["quarantined"] == []
    assert SKILL_PATH not in stored(pushed)
