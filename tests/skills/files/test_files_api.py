"""API of context files: list, approve, ignore, waive, and choose the source of an agent."""

# ruff: noqa: F811  # fixtures are imported and requested by name

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from personas.models import Agent, AuditEvent, User, Workspace
from prompts.publishing.inputs.collect import collect_inputs
from skills.models import ContextFile, Source, Waiver
from tests.factories import join, make_agent, make_channel, make_user
from tests.personas.api.response_checker import TrueApi, without_id
from tests.personas.api.skills_stage import (  # noqa: F401  # fixtures
    GOOD,
    HARNESS,
    POISON,
    SKILL_PATH,
    SKILL_TEXT,
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

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
WAIVER = {"reason": "A known sample."}


@pytest.fixture
def by_hand(workspace: Workspace) -> Source:
    """A source with manual approval and one new file."""
    source = make_pushed(workspace, "By hand", approval="manual")
    push_and_refresh(source, {"AGENTS.md": GOOD})
    return source


def get_seen_digest(api: TrueApi, number: int) -> str:
    return str(api.get(f"context-files/{number}").json()["seen_digest"])


# --- reading -------------------------------------------------------------------------------------------


def test_files_are_filtered_by_status_source_kind_and_search(
    admin: TrueApi, pushed: Source, by_hand: Source
) -> None:
    push_and_refresh(pushed, {"docs/AGENTS.md": POISON, SKILL_PATH: SKILL_TEXT})
    for query, paths in {
        "": ["AGENTS.md", "docs/AGENTS.md", SKILL_PATH],
        "?status=quarantined": ["docs/AGENTS.md"],
        "?source=by-hand": ["AGENTS.md"],
        "?kind=skill": [SKILL_PATH],
        "?q=DOCS": ["docs/AGENTS.md"],
        "?source=no-such": [],
        "?updated_since=2126-01-01T00:00:00Z": [],
        "?limit=1": ["AGENTS.md"],
    }.items():
        rows = admin.get(f"context-files{query}").json()["items"]
        assert [row["path"] for row in rows] == paths, query
    assert admin.get("context-files?fields=id,path").json()["items"][0].keys() == {"id", "path"}
    assert admin.get("context-files?status=odd").json()["errors"][0]["parameter"] == "status"


def test_needs_review_filters_the_inbox(admin: TrueApi, by_hand: Source) -> None:
    number = file_in(by_hand).pk
    assert [row["id"] for row in admin.get("context-files?needs_review=true").json()["items"]] == [number]
    assert admin.get(f"context-files/{number}").json()["needs_review"] is True
    admin.post(f"context-files/{number}:approve", {"digest": get_seen_digest(admin, number)})
    assert admin.get("context-files?needs_review=true").json()["items"] == []
    assert admin.get(f"context-files/{number}").json()["needs_review"] is False
    assert [row["id"] for row in admin.get("context-files?needs_review=false").json()["items"]] == [number]


def test_the_number_of_queries_does_not_grow_with_the_list(
    admin: TrueApi, pushed: Source, django_assert_max_num_queries: Any
) -> None:
    push_and_refresh(pushed, {f"{number}/AGENTS.md": f"{GOOD}{number}" for number in range(12)})
    with django_assert_max_num_queries(8):
        assert len(admin.get("context-files").json()["items"]) == 12
    with django_assert_max_num_queries(8):
        admin.get("sources")


def test_quarantined_text_is_shown_to_members_only(
    admin: TrueApi, bot: TrueApi, pushed: Source, mira: Agent
) -> None:
    push_and_refresh(pushed, {"AGENTS.md": GOOD})
    read_source(mira, pushed)
    push_and_refresh(pushed, {"AGENTS.md": POISON})
    number = file_in(pushed).pk
    for path in ("", "/revisions", "/revisions/2"):
        assert bot.get(f"context-files/{number}{path}").status_code == 403
    body = admin.get(f"context-files/{number}").json()
    assert (body["status"], body["text"], body["agents"]) == ("quarantined", GOOD, ["mira"])
    assert body["findings"]
    assert "\u202e" not in admin.get(f"context-files/{number}/revisions").content.decode()
    assert admin.get(f"context-files/{number}/revisions/2").json()["text"] == POISON
    history = admin.get(f"context-files/{number}/revisions").json()["items"]
    assert [(row["revision"], row["verdict"]) for row in history] == [(2, "blocked"), (1, "good")]
    for missing in (0, 3, 2**31, 2**63):
        assert admin.get(f"context-files/{number}/revisions/{missing}").status_code == 404


# --- deciding ------------------------------------------------------------------------------------------


def test_a_file_is_approved_with_the_digest_that_was_viewed(admin: TrueApi, by_hand: Source) -> None:
    number = file_in(by_hand).pk
    old = get_seen_digest(admin, number)
    push_and_refresh(by_hand, {"AGENTS.md": GOOD + "Knock first.\n"})
    stale = admin.post(f"context-files/{number}:approve", {"digest": old})
    assert (stale.status_code, stale.json()["code"]) == (409, "conflict")
    approved = admin.post(f"context-files/{number}:approve", {"digest": get_seen_digest(admin, number)})
    assert approved.json()["text"] == GOOD + "Knock first.\n"
    assert approved.json()["status"] == "current"
    assert admin.post(f"context-files/{number}:approve", {"digest": "abc"}).status_code == 422


def test_several_files_are_approved_and_one_refusal_does_not_stop_the_others(
    admin: TrueApi, by_hand: Source, foreign: Source
) -> None:
    push_and_refresh(by_hand, {"docs/AGENTS.md": GOOD, "bad/AGENTS.md": POISON})
    good, stale, bad = (
        file_in(by_hand, path).pk for path in ("AGENTS.md", "docs/AGENTS.md", "bad/AGENTS.md")
    )
    theirs = file_in(foreign).pk
    picks = [
        (good, get_seen_digest(admin, good)),
        (stale, "0" * 64),
        (bad, get_seen_digest(admin, bad)),
        (theirs, ""),
        (2**63 - 1, ""),
    ]
    body = {"files": [{"id": number, "digest": digest} for number, digest in picks]}
    result = admin.post("context-files:approve", body).json()
    assert result["approved"] == [good]
    assert [(one["pointer"], one["code"]) for one in result["refused"]] == [
        ("/files/1", "conflict"),
        ("/files/2", "invalid_file_status"),
        ("/files/3", "not_found"),
        ("/files/4", "not_found"),
    ]
    assert result["refused"][2]["detail"] == result["refused"][3]["detail"]


def test_a_file_is_ignored_and_unignored_by_the_api(admin: TrueApi, pushed: Source) -> None:
    push_and_refresh(pushed, {"AGENTS.md": GOOD})
    number = file_in(pushed).pk
    ignored = admin.post(f"context-files/{number}:ignore").json()
    assert (ignored["status"], ignored["text"]) == ("ignored", None)
    assert admin.post(f"context-files/{number}:unignore").json()["text"] == GOOD


@pytest.mark.usefixtures("stopped_clock")
def test_findings_are_waived_with_a_reason_until_a_date(admin: TrueApi, pushed: Source) -> None:
    push_and_refresh(pushed, {"AGENTS.md": POISON})
    number = file_in(pushed).pk
    path, body = f"context-files/{number}", WAIVER | {"digest": get_seen_digest(admin, number)}
    assert admin.post(f"{path}:approve", {"digest": body["digest"]}).json()["code"] == "invalid_file_status"
    waived = admin.post(f"{path}:waive", body).json()
    assert (waived["text"], waived["waivers"][0]["reason"]) == (POISON, "A known sample.")
    assert waived["waivers"][0]["until"] == (timezone.now().date() + timedelta(days=30)).isoformat()
    ended = admin.post(f"{path}/waivers/{waived['waivers'][0]['id']}:end").json()
    assert (ended["status"], ended["text"]) == ("quarantined", None)
    today = timezone.now().date()
    for until in ("2026-13-45", "0001-01-01", "9999-12-31", (today - timedelta(days=2)).isoformat()):
        refused = admin.post(f"{path}:waive", body | {"until": until})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/until")
    for wrong in ({"reason": " "}, {"digest": ""}, {"until": "tomorrow"}):
        assert admin.post(f"{path}:waive", body | wrong).status_code == 422
    assert admin.post(f"{path}:waive", body | {"digest": "0" * 64}).status_code == 409


def test_permissions_are_the_same_as_on_the_pages(
    key_for: Callable[..., TrueApi], workspace: Workspace, pushed: Source, bob: User, bot: TrueApi
) -> None:
    rita = make_user("Rita")
    join(workspace, rita, "reviewer")
    editor, reviewer = key_for(workspace, bob), key_for(workspace, rita)
    push_and_refresh(pushed, {"AGENTS.md": POISON})
    number = file_in(pushed).pk
    body = WAIVER | {"digest": get_seen_digest(editor, number)}
    for caller in (editor, bot, key_for(workspace, rita, verbs=["read", "write"])):
        assert caller.post(f"context-files/{number}:waive", body).status_code == 403
    for verb in ("ignore", "unignore", "approve"):
        for caller in (reviewer, bot):
            assert caller.post(f"context-files/{number}:{verb}", {"digest": ""}).status_code == 403
    waived = reviewer.post(f"context-files/{number}:waive", body)
    end = f"context-files/{number}/waivers/{waived.json()['waivers'][0]['id']}:end"
    assert editor.post(end).status_code == 403
    assert editor.post(f"context-files/{number}:ignore").status_code == 200
    assert reviewer.post(end).status_code == 200


@pytest.mark.hard
def test_foreign_files_and_waivers_look_like_missing_ones(
    admin: TrueApi, foreign: Source, pushed: Source, elsewhere: Workspace
) -> None:
    theirs = file_in(foreign).pk
    digest = "0" * 64
    requests: list[tuple[str, str, Any]] = [
        ("GET", "", None),
        ("GET", "/revisions", None),
        ("GET", "/revisions/1", None),
        ("POST", ":approve", {"digest": digest}),
        ("POST", ":ignore", {}),
        ("POST", ":unignore", {}),
        ("POST", ":waive", WAIVER | {"digest": digest}),
        ("POST", "/waivers/1:end", {}),
    ]
    for method, more, body in requests:
        responses = [
            without_id(admin.call(method, f"context-files/{key}{more}", body))
            for key in (theirs, 10**9, 2**63, 0)
        ]
        assert responses == [responses[0]] * 4
        assert responses[0][0] == 404
    push_and_refresh(pushed, {"AGENTS.md": POISON})
    own = file_in(pushed).pk
    waiver = Waiver(
        workspace=elsewhere, file_id=theirs, digest=digest, reason="Theirs", until=timezone.now().date()
    )
    waiver.save()
    ends = [
        without_id(admin.post(f"context-files/{own}/waivers/{key}:end")) for key in (waiver.pk, 10**9, 2**63)
    ]
    assert ends == [ends[0]] * 3
    waiver.refresh_from_db()
    assert waiver.ended_at is None
    assert ContextFile.objects.in_workspace(elsewhere).get(pk=theirs).is_ignored is False


def test_a_limited_key_reads_the_files_of_its_agents_and_changes_nothing(
    narrow_admin: TrueApi, narrow_bot: TrueApi, admin: TrueApi, mira: Agent, nils: Agent
) -> None:
    workspace = mira.workspace
    hers, his = make_pushed(workspace, "Hers"), make_pushed(workspace, "His")
    push_and_refresh(hers, {"AGENTS.md": GOOD})
    push_and_refresh(
        his, {"AGENTS.md": GOOD, SKILL_PATH: SKILL_TEXT, ".agents/skills/toast/SKILL.md": SKILL_TEXT}
    )
    read_source(mira, hers)
    read_source(nils, his)
    assigned = file_in(his, SKILL_PATH).pk
    body = {"scope": "selected", "agents": ["mira", "nils"]}
    assert admin.post(f"discovered-skills/{assigned}:assign", body).status_code == 200
    number = file_in(hers).pk
    for caller in (narrow_admin, narrow_bot):
        other = file_in(his, ".agents/skills/toast/SKILL.md").pk
        if caller is narrow_admin:
            assert [row["id"] for row in caller.get("context-files").json()["items"]] == [number, assigned]
            assert [row["agents"] for row in caller.get("discovered-skills").json()["items"]] == [["mira"]]
            assert caller.get(f"context-files/{assigned}").json()["agents"] == ["mira"]
            for path in ("context-files", "discovered-skills"):
                assert caller.get(f"{path}/{other}").status_code == 404
        for verb, data in (
            ("approve", {"digest": ""}),
            ("ignore", {}),
            ("waive", WAIVER | {"digest": "0" * 64}),
        ):
            assert caller.post(f"context-files/{number}:{verb}", data).status_code == 403
        assert (
            caller.post("context-files:approve", {"files": [{"id": number, "digest": ""}]}).status_code == 403
        )
        assert caller.post(f"discovered-skills/{assigned}:assign", {"scope": "all"}).status_code == 403
        assert caller.post("discovered-skills:trust", {"is_required": True}).status_code == 403


# --- what an agent reads -------------------------------------------------------------------------------


def test_an_agent_gets_a_source_and_inherits_again(
    admin: TrueApi, pushed: Source, mira: Agent, workspace: Workspace
) -> None:
    push_and_refresh(pushed, {"AGENTS.md": GOOD, "docs/AGENTS.md": POISON})
    first = admin.get("agents/mira/context")
    assert (first.json()["source"], first.json()["files"]) == (None, [])
    assert first.json()["empty_reason"]
    assert first.json()["working_directory_problem"] == ""
    body = {"source": pushed.slug, "harness": HARNESS, "working_directory": "docs"}
    chosen = admin.put("agents/mira/context", body, first["ETag"])
    assert chosen.status_code == 200, chosen.content
    context = chosen.json()
    assert (context["source"], context["harness"], context["chosen_by"]) == (pushed.slug, HARNESS, "mira")
    assert [file["path"] for file in context["files"]] == ["AGENTS.md"]
    assert [file["path"] for file in context["withheld"]] == ["docs/AGENTS.md"]
    make_agent(workspace, "kit", parent=mira)
    assert admin.get("agents/kit/context").json()["is_inherited"] is True
    kept = admin.put("agents/mira/context", {"source": None, "harness": "plain"}, chosen["ETag"]).json()
    assert (kept["source"], kept["working_directory"]) == (None, "docs")
    assert admin.call("DELETE", "agents/mira/context", If_Match=kept["etag"]).status_code == 204
    assert admin.get("agents/mira/context").json()["chosen_by"] is None


def test_a_working_directory_that_cannot_be_found_is_reported(
    admin: TrueApi, pushed: Source, mira: Agent
) -> None:
    body = {"source": pushed.slug, "harness": HARNESS, "working_directory": "/home/bot/docs"}
    chosen = admin.put("agents/mira/context", body, admin.get("agents/mira/context")["ETag"])
    assert "/home/bot/docs" in chosen.json()["working_directory_problem"]
    corrected = admin.put("agents/mira/context", body | {"working_directory": "docs"}, chosen["ETag"])
    assert corrected.json()["working_directory_problem"] == ""


def test_a_skill_folder_outside_every_source_is_reported(
    admin: TrueApi, pushed: Source, mira: Agent, workspace: Workspace
) -> None:
    """Fault 11 of the review of use: accepted, and reported in the API, on the page and in warnings."""
    body = {"source": pushed.slug, "harness": HARNESS, "extra_skill_folders": ["/skills", "own"]}
    etag = admin.get("agents/mira/context")["ETag"]
    chosen = admin.put("agents/mira/context", body, etag)
    problem = chosen.json()["extra_skill_folders_problem"]
    assert (chosen.status_code, "/skills is not in any" in problem, "own" in problem) == (200, True, False)
    child = make_agent(workspace, "kit", parent=mira, channels=[make_channel(workspace, "deck")])
    [collected] = collect_inputs(workspace, [child], at=timezone.now())
    assert [warning for warning in collected.problems if "/skills" in warning] == [problem]
    for changes in ({"extra_skill_folders": ["own"]}, {"has_skills": False}):
        corrected = admin.put("agents/mira/context", body | changes, chosen["ETag"])
        assert corrected.json()["extra_skill_folders_problem"] == "", changes
        chosen = admin.put("agents/mira/context", body | {"has_skills": True}, corrected["ETag"])
        assert chosen.json()["extra_skill_folders_problem"] == problem
    located = body | {"sources": [{"source": pushed.slug, "location": "/"}]}
    located.pop("source")
    assert (
        admin.put("agents/mira/context", located, chosen["ETag"]).json()["extra_skill_folders_problem"] == ""
    )


def test_several_sources_and_settings_are_chosen_in_order(
    admin: TrueApi, bot: TrueApi, pushed: Source, mira: Agent, workspace: Workspace
) -> None:
    home = make_pushed(workspace, "Home", location="/home/user")
    push_and_refresh(home, {"AGENTS.md": GOOD})
    push_and_refresh(pushed, {"AGENTS.md": GOOD})
    body = {
        "sources": [
            {"source": home.slug, "scope": "home"},
            {"source": pushed.slug, "scope": "project", "location": "/home/user/app/"},
        ],
        "harness": "opal",
        "working_directory": "src",
        "file_names": ["AGENTS.md", "TEAM.md"],
        "extra_skill_folders": ["~/library"],
        "pulled_skills_folder": "/home/user/skills",
    }
    first = admin.put("agents/mira/context", body, "*")
    assert first.status_code == 200, first.content
    context = first.json()
    assert [(one["source"], one["scope"], one["effective_location"]) for one in context["sources"]] == [
        (home.slug, "home", "/home/user"),
        (pushed.slug, "project", "/home/user/app"),
    ]
    assert (context["source"], context["bot_directory"]) == (pushed.slug, "/home/user/app/src")
    assert (context["has_context_files"], context["has_skills"]) == (True, True)
    assert [(file["path"], file["bot_path"]) for file in context["files"]] == [
        ("AGENTS.md", "/home/user/AGENTS.md"),
        ("AGENTS.md", "/home/user/app/AGENTS.md"),
    ]
    # Reversed, shorter, and with settings that stay as they are.
    again = admin.put("agents/mira/context", {"sources": [], "harness": "opal"}, first["ETag"])
    assert again["ETag"] != first["ETag"]
    assert (again.json()["sources"], again.json()["file_names"]) == ([], ["AGENTS.md", "TEAM.md"])
    assert again.json()["pulled_skills_folder"] == "/home/user/skills"
    event: Any = AuditEvent.objects.in_workspace(workspace).filter(verb="changed context").latest("pk")
    assert (event.before["sources"][1]["location"], event.after["sources"]) == ("/home/user/app", [])


INVALID_CONTEXTS: dict[str, tuple[dict[str, Any], str]] = {
    "neither": ({}, "/sources"),
    "both": ({"source": None, "sources": []}, "/sources"),
    "an unknown source": ({"sources": [{"source": "no-such"}]}, "/sources/0/source"),
    "an unknown scope": ({"sources": [{"source": "house", "scope": "root"}]}, "/sources/0/scope"),
    "a relative location": ({"sources": [{"source": "house", "location": "srv"}]}, "/sources"),
    "a location with ..": ({"sources": [{"source": "house", "location": "/srv/../x"}]}, "/sources"),
    "a source twice": ({"sources": [{"source": "house"}, {"source": "house"}]}, "/sources"),
    "a path as a file name": ({"source": None, "file_names": ["docs/AGENTS.md"]}, "/file_names"),
    "a skill folder above the root": (
        {"source": None, "extra_skill_folders": ["../x"]},
        "/extra_skill_folders",
    ),
    "a relative pulled folder": ({"source": None, "pulled_skills_folder": "skills"}, "/pulled_skills_folder"),
}


def test_an_invalid_context_is_refused_at_its_place(admin: TrueApi, pushed: Source, mira: Agent) -> None:
    for case, (values, pointer) in INVALID_CONTEXTS.items():
        sources = [
            one | {"source": pushed.slug} if one["source"] == "house" else one
            for one in values.get("sources", [])
        ]
        body = values | ({"sources": sources} if "sources" in values else {}) | {"harness": HARNESS}
        response = admin.put("agents/mira/context", body, "*")
        assert response.status_code == 422, case
        assert response.json()["errors"][0]["pointer"] == pointer, case


def test_choosing_a_source_requires_if_match(
    admin: TrueApi, pushed: Source, mira: Agent, bot: TrueApi
) -> None:
    body = {"source": pushed.slug, "harness": HARNESS}
    assert admin.put("agents/mira/context", body).status_code == 428
    first = admin.get("agents/mira/context")["ETag"]
    assert admin.put("agents/mira/context", body, first).status_code == 200
    assert admin.put("agents/mira/context", body, first).status_code == 412
    assert admin.call("DELETE", "agents/mira/context").status_code == 428
    assert bot.put("agents/mira/context", body, "*").status_code == 403


@pytest.mark.hard
def test_foreign_sources_and_agents_cannot_be_chosen(
    admin: TrueApi, foreign: Source, mira: Agent, elsewhere: Workspace, pushed: Source
) -> None:
    refusals = [
        without_id(admin.put("agents/mira/context", {"source": slug, "harness": HARNESS}, "*"))
        for slug in (foreign.slug, "no-such")
    ]
    assert refusals[0] == refusals[1]
    assert (refusals[0][0], refusals[0][1]["errors"][0]["pointer"]) == (422, "/source")
    make_agent(elsewhere, "theirs")
    for method, body in (("GET", None), ("PUT", {"source": None, "harness": "plain"}), ("DELETE", None)):
        responses = [
            without_id(admin.call(method, f"agents/{slug}/context", body, If_Match="*"))
            for slug in ("theirs", "no-such")
        ]
        assert responses[0] == responses[1]
        assert responses[0][0] == 404
    odd = admin.put("agents/mira/context", {"source": pushed.slug, "harness": "odd"}, "*")
    assert odd.json()["errors"][0]["pointer"] == "/harness"


def test_a_limited_key_chooses_among_the_sources_of_its_agents(
    narrow_admin: TrueApi, pushed: Source, mira: Agent, nils: Agent
) -> None:
    read_source(nils, pushed)
    body = {"source": pushed.slug, "harness": HARNESS}
    assert narrow_admin.put("agents/mira/context", body, "*").status_code == 422
    assert narrow_admin.get("agents/nils/context").status_code == 404
    assert narrow_admin.get("agents/mira/context").status_code == 200
    assert narrow_admin.put("agents/nils/context", body, "*").status_code == 404
    read_source(mira, pushed)
    assert narrow_admin.put("agents/mira/context", body, "*").status_code == 200
