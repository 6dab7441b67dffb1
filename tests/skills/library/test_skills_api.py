"""API of skills: records, import, export, discovered skills, and the skills of an agent."""
# ruff: noqa: F811  # fixtures are imported and requested by name

from typing import Any

import pytest

from personas.models import Agent, Workspace
from skills.models import Skill, Source
from tests.factories import make_agent, make_skill
from tests.personas.api.response_checker import TrueApi, without_id
from tests.personas.api.skills_stage import (  # noqa: F401  # fixtures
    POISON,
    SKILL_PATH,
    SKILL_TEXT,
    admin,
    bot,
    file_in,
    foreign,
    key_for,
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

pytestmark = pytest.mark.django_db
TEA = {"name": "tea", "description": "Makes tea.", "body": "Boil water."}


# --- written here --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_skill_is_created_assigned_and_versioned(admin: TrueApi, mira: Agent) -> None:
    created = admin.post("skills", {**TEA, "agents": ["mira"], "metadata": {"origin": "kitchen"}})
    assert created.status_code == 201, created.content
    assert (created["Location"], created.json()["agents"]) == ("/api/v1/skills/tea", ["mira"])
    assert created.json()["metadata"] == {"origin": "kitchen"}
    changed = admin.patch("skills/tea", {"body": "Boil fresh water.", "message": "Fresh"}, created["ETag"])
    assert (changed.json()["agents"], changed.json()["body"]) == (["mira"], "Boil fresh water.")
    history = admin.get("skills/tea/revisions").json()["items"]
    assert [(row["revision"], row["data"]["body"]) for row in history] == [
        (2, "Boil fresh water."),
        (1, "Boil water."),
    ]
    back = admin.call("POST", "skills/tea/revisions/1:restore", If_Match=changed["ETag"])
    assert back.json()["body"] == "Boil water."
    assert admin.delete("skills/tea", back["ETag"]).status_code == 204
    assert admin.get("skills").json()["items"] == []
    assert admin.post("skills/tea:restore").json()["is_archived"] is False


def test_put_resets_omitted_fields(admin: TrueApi, mira: Agent) -> None:
    created = admin.post("skills", {**TEA, "agents": ["mira"], "license": "MIT", "metadata": {"a": "b"}})
    put = admin.put("skills/tea", TEA, created["ETag"]).json()
    assert (put["agents"], put["license"], put["metadata"]) == ([], "", {})


@pytest.mark.parametrize(
    ("values", "pointer"),
    [
        ({"name": "Tea Time"}, "/name"),
        ({"name": "new"}, "/name"),
        ({"body": ""}, "/body"),
        ({"metadata": {"a": 1}}, "/metadata/a"),
        ({"metadata": {"a": "b\nc"}}, "/metadata/a"),
        ({"metadata": {"a:b": "c"}}, "/metadata"),
        ({"metadata": ["a"]}, "/metadata"),
        ({"colour": "green"}, "/colour"),
        ({"agents": ["no-such"]}, "/agents"),
        ({"agents": "mira"}, "/agents"),
    ],
)
def test_invalid_values_are_reported_by_field(admin: TrueApi, values: dict[str, Any], pointer: str) -> None:
    refused = admin.post("skills", TEA | values)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, pointer)


def test_foreign_agents_and_skills_look_like_missing_ones(
    admin: TrueApi, elsewhere: Workspace, workspace: Workspace
) -> None:
    make_agent(elsewhere, "theirs")
    make_skill(elsewhere, "secret")
    for path in ("skills/{}", "skills/{}/file", "skills/{}/revisions"):
        assert without_id(admin.get(path.format("secret"))) == without_id(admin.get(path.format("no-such")))
    one = admin.post("skills", {**TEA, "agents": ["theirs"]})
    other = admin.post("skills", {**TEA, "agents": ["no-such"]})
    assert without_id(one) == without_id(other)
    assert not Skill.objects.in_workspace(workspace).exists()
    for method in ("PATCH", "DELETE"):
        body = {"body": "Mine."} if method == "PATCH" else None
        assert admin.call(method, "skills/secret", body, If_Match="*").status_code == 404


@pytest.mark.slow
def test_a_limited_key_reads_the_skills_of_its_agents_and_changes_none(
    narrow_admin: TrueApi, narrow_bot: TrueApi, workspace: Workspace, mira: Agent, nils: Agent
) -> None:
    make_skill(workspace, "both", agents=[mira, nils])
    make_skill(workspace, "every", for_all_agents=True)
    make_skill(workspace, "other", agents=[nils])
    rows = narrow_admin.get("skills").json()["items"]
    assert [(row["name"], row["agents"]) for row in rows] == [("both", ["mira"]), ("every", [])]
    assert narrow_admin.get("skills/other").status_code == 404
    assert narrow_admin.get("skills/other/file").status_code == 404
    for caller in (narrow_admin, narrow_bot):
        assert caller.get("skills/both/revisions").status_code == 403
        assert caller.post("skills", TEA).status_code == 403
        assert caller.patch("skills/both", {"body": "Mine."}, "*").status_code == 403
        assert caller.put("skills/both", TEA, "*").status_code == 403
        assert caller.delete("skills/both", "*").status_code == 403
        assert caller.post("skills/both:restore").status_code == 403
        assert caller.post("skills:import", {"text": SKILL_TEXT}).status_code == 403
    assert [row["name"] for row in narrow_admin.get("skills?agent=nils").json()["items"]] == ["both", "every"]


def test_bots_neither_list_nor_write_skills(bot: TrueApi, workspace: Workspace) -> None:
    make_skill(workspace, "tea")
    assert bot.get("skills").status_code == 403
    assert bot.get("skills/tea").status_code == 403
    assert bot.post("skills", TEA).json()["code"] == "out_of_scope"
    assert bot.delete("skills/tea", "*").status_code == 403


# --- files in and out ----------------------------------------------------------------------------------


def test_a_skill_is_imported_and_exported_as_a_file(admin: TrueApi) -> None:
    created = admin.post("skills:import", {"text": SKILL_TEXT, "message": "From the shelf"})
    assert (created.status_code, created["Location"]) == (201, "/api/v1/skills/tea")
    assert (created.json()["skill"]["body"], created.json()["warnings"]) == ("Boil water.", [])
    for accept in ("*/*", "text/markdown"):
        file = admin.get("skills/tea/file", Accept=accept)
        assert (file.status_code, file["Content-Type"]) == (200, "text/markdown; charset=utf-8")
        assert file.content.decode() == SKILL_TEXT
    as_json = admin.get("skills/tea/file", Accept="application/json").json()
    assert as_json == {"name": "tea", "text": SKILL_TEXT}
    assert admin.get("skills/tea/file", Accept="image/png").status_code == 406
    assert admin.get("skills/tea/revisions").json()["items"][0]["message"] == "From the shelf"


def test_an_invalid_file_is_rejected_with_line_numbers(admin: TrueApi) -> None:
    text = "---\nname: Tea Time\ndescription:\n---\n\nBoil.\n"
    refused = admin.post("skills:import", {"text": text})
    errors = refused.json()["errors"]
    assert (refused.status_code, {error["pointer"] for error in errors}) == (422, {"/text"})
    assert [error["detail"][:7] for error in errors] == ["Line 2:", "Line 3:"]
    for text in ("no head", "---\nname: a\n\u0000", "---\n" * 50):
        assert admin.post("skills:import", {"text": text}).status_code == 422
    admin.post("skills:import", {"text": SKILL_TEXT})
    assert admin.post("skills:import", {"text": SKILL_TEXT}).status_code == 422


def test_an_import_sent_twice_creates_one_skill(admin: TrueApi) -> None:
    first = admin.post("skills:import", {"text": SKILL_TEXT}, Idempotency_Key="a")
    again = admin.post("skills:import", {"text": SKILL_TEXT}, Idempotency_Key="a")
    assert (again.status_code, again.content) == (201, first.content)


# --- found ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_discovered_skills_are_read_assigned_and_copied(admin: TrueApi, pushed: Source, mira: Agent) -> None:
    push_and_refresh(pushed, {SKILL_PATH: SKILL_TEXT})
    [row] = admin.get("discovered-skills").json()["items"]
    waiting = admin.post(f"discovered-skills/{row['id']}:assign", {"scope": "all"}).json()
    assert waiting["status"] == "pending"
    assert f"context-files/{row['id']}:approve" in waiting["next_step"]
    admin.post(f"discovered-skills/{row['id']}:assign", {"scope": "where_found"})
    admin.post("discovered-skills:trust", {"is_required": False})
    assert admin.get(f"discovered-skills/{row['id']}").json()["next_step"] == ""
    [row] = admin.get("discovered-skills").json()["items"]
    assert (row["name"], row["source"], row["status"]) == ("tea", pushed.slug, "trusted")
    assert admin.get(f"discovered-skills/{row['id']}").json()["body"].strip() == "Boil water."
    assigned = admin.post(
        f"discovered-skills/{row['id']}:assign", {"scope": "selected", "agents": ["mira"]}
    ).json()
    assert (assigned["scope"], assigned["agents"]) == ("selected", ["mira"])
    copied = admin.post(f"discovered-skills/{row['id']}:copy")
    assert (copied.status_code, copied.json()["skill"]["name"]) == (201, "tea")
    assert copied.json()["not_copied"] == []
    assert admin.post(f"discovered-skills/{row['id']}:copy").status_code == 422
    for query in ("q=kettle", "status=pending", "source=no-such"):
        assert admin.get(f"discovered-skills?{query}").json()["items"] == []
    assert (
        len(
            admin.get(f"discovered-skills?q=Makes&status=trusted&source={pushed.slug}&fields=id").json()[
                "items"
            ]
        )
        == 1
    )


def test_a_copy_lists_the_files_of_the_skill_that_it_does_not_have(admin: TrueApi, pushed: Source) -> None:
    folder = SKILL_PATH.rpartition("/")[0]
    more = {f"{folder}/references/leaves.md": "Green.\n", f"{folder}/scripts/boil.py": "boil()\n"}
    push_and_refresh(pushed, {SKILL_PATH: SKILL_TEXT, f"{folder}-pot/x.md": "Not in it.\n", **more})
    copied = admin.post(f"discovered-skills/{file_in(pushed, SKILL_PATH).pk}:copy")
    assert copied.status_code == 201
    assert copied.json()["not_copied"] == ["references/leaves.md", "scripts/boil.py"]


def test_a_quarantined_skill_shows_no_text_and_cannot_be_copied(
    admin: TrueApi, bot: TrueApi, pushed: Source
) -> None:
    push_and_refresh(pushed, {SKILL_PATH: SKILL_TEXT + POISON})
    number = file_in(pushed, SKILL_PATH).pk
    body = admin.get(f"discovered-skills/{number}").json()
    assert (body["status"], body["body"], body["digest"]) == ("quarantined", None, None)
    assert admin.post(f"discovered-skills/{number}:copy").status_code == 409
    assert bot.post(f"discovered-skills/{number}:copy").status_code == 403


def test_only_source_managers_set_the_trust_policy(
    admin: TrueApi, bot: TrueApi, workspace: Workspace
) -> None:
    for needed in (True, False):
        answer: dict[str, Any] = {"is_required": needed, "kept": [], "removed": []}
        assert admin.post("discovered-skills:trust", {"is_required": needed}).json() == answer
        assert admin.get("discovered-skills:trust").json() == {"is_required": needed}
    assert bot.post("discovered-skills:trust", {"is_required": True}).status_code == 403


@pytest.mark.hard
def test_foreign_found_skills_look_like_missing_ones(
    admin: TrueApi, foreign: Source, pushed: Source, elsewhere: Workspace
) -> None:
    theirs = file_in(foreign, SKILL_PATH).pk
    for path in ("discovered-skills/{}", "context-files/{}"):
        assert without_id(admin.get(path.format(theirs))) == without_id(admin.get(path.format(10**9)))
    for action, body in (("copy", {}), ("assign", {"scope": "all"})):
        responses = [
            without_id(admin.post(f"discovered-skills/{key}:{action}", body))
            for key in (theirs, 10**9, 2**63)
        ]
        assert responses[0] == responses[1] == responses[2]
        assert responses[0][0] == 404
    push_and_refresh(pushed, {SKILL_PATH: SKILL_TEXT})
    make_agent(elsewhere, "theirs")
    own = file_in(pushed, SKILL_PATH).pk
    body = {"scope": "selected"}
    one, other = (
        admin.post(f"discovered-skills/{own}:assign", {**body, "agents": [name]})
        for name in ("theirs", "no-such")
    )
    assert without_id(one) == without_id(other)
    assert one.status_code == 422
    assert admin.post(f"discovered-skills/{own}:assign", body).json()["errors"][0]["pointer"] == "/agents"


# --- skills of an agent --------------------------------------------------------------------------------


def test_the_effective_skills_of_an_agent_are_listed(
    bot: TrueApi, admin: TrueApi, workspace: Workspace, mira: Agent, pushed: Source
) -> None:
    admin.post("discovered-skills:trust", {"is_required": False})
    push_and_refresh(pushed, {SKILL_PATH: SKILL_TEXT})
    read_source(mira, pushed)
    make_skill(workspace, "toast", agents=[mira], body="Slice bread.")
    make_skill(workspace, "hers", body="Not for Mira.")
    rows = admin.get("agents/mira/skills").json()["items"]
    assert [(row["name"], row["origin"]["kind"], row["is_used"]) for row in rows] == [
        ("toast", "skill", True),
        ("tea", "file", True),
    ]
    assert bot.get("agents/mira/skills").status_code == 403
