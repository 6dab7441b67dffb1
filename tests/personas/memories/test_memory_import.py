"""Import of memories.json: shared memories, duplicates skipped, all entries or none."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from personas.api_keys.format import BOT
from personas.errors import InvalidInput
from personas.memories.memory_file import MAX_ENTRIES, import_memories, parse_memory_file
from personas.memories.services import revoke_memory
from personas.models import AuditEvent, Memory
from personas.roles import Role
from prompts.publishing.builds.services import rebuild_agents
from tests.factories import join, make_agent, make_memory, make_user, signed_in
from tests.prompts.serving.serving_stage import make_stage

pytestmark = pytest.mark.django_db
TEXTS = ["The user is called Ada.", "Ada prefers tea."]


def list_texts(workspace) -> list[str]:
    return list(Memory.objects.in_workspace(workspace).order_by("pk").values_list("text", flat=True))


@pytest.mark.parametrize(
    "data",
    [
        TEXTS,
        [{"text": TEXTS[0]}, {"content": f" {TEXTS[1]}\n"}],
        {"memories": [TEXTS[0], {"memory": TEXTS[1], "id": 7}]},
    ],
)
def test_every_known_form_of_the_file_gives_shared_active_memories(workspace, by_alice, data):
    result = import_memories(workspace, data, by=by_alice)
    assert [(row.index, row.memory.text) for row in result.created] == list(enumerate(TEXTS))
    rows = Memory.objects.in_workspace(workspace)
    assert {(row.status, row.agent, row.author) for row in rows} == {("active", None, by_alice.user)}
    assert {row.source for row in rows} == {"memories.json"}


def test_metadata_is_kept_and_other_keys_are_listed(workspace, by_alice):
    entry = {
        "text": "Tea at four.",
        "source": "onboarding",
        "valid_from": "2026-03-07T14:55:05+01:00",
        "valid_until": None,
        "createdAt": 1,
        "tags": ["tea"],
    }
    result = import_memories(workspace, [entry], by=by_alice)
    memory: Any = result.created[0].memory
    assert (memory.source, memory.valid_from.isoformat()) == ("onboarding", "2026-03-07T13:55:05+00:00")
    assert result.ignored_keys == ["createdAt", "tags"]


def test_duplicates_are_skipped_and_named(workspace, by_alice):
    known = make_memory(workspace, TEXTS[0])
    revoked = revoke_memory(make_memory(workspace, "Gone."), by=by_alice)
    own = make_memory(workspace, TEXTS[1], agent=make_agent(workspace, "mira"))
    result = import_memories(workspace, [TEXTS[0], TEXTS[1], "Gone.", TEXTS[1]], by=by_alice)
    # A memory of one agent is no duplicate of a shared memory.
    assert [row.index for row in result.created] == [1]
    created = result.created[0].memory
    assert created != own
    assert [(row.index, row.memory) for row in result.skipped] == [(0, known), (2, revoked), (3, created)]
    again = import_memories(workspace, TEXTS, by=by_alice)
    assert (len(again.created), len(again.skipped)) == (0, 2)


def test_another_workspaces_memories_are_no_duplicates(workspace, elsewhere, by_alice):
    make_memory(elsewhere, TEXTS[0])
    assert len(import_memories(workspace, TEXTS, by=by_alice).created) == 2


BAD: list[tuple[Any, str]] = [
    (["Fine.", 7], "1"),
    (["Fine.", {"note": "x"}], "1"),
    ({"memories": ["Fine.", {"text": 7}]}, "memories.1.text"),
    ([{"content": "   "}], "0.content"),
    (["x" * 2_001], "0"),
    (["a\0b"], "0"),
    ([{"text": "T", "source": "a\nb"}], "0.source"),
    ([{"text": "T", "valid_from": "soon"}], "0.valid_from"),
    ([{"text": "T", "valid_from": "2026-02-30T10:00:00Z"}], "0.valid_from"),
    ({"memories": "Fine."}, "memories"),
    ({}, "memories"),
    ("Fine.", "memories"),
    (["x"] * (MAX_ENTRIES + 1), "memories"),
]


@pytest.mark.parametrize(("data", "path"), BAD)
def test_an_error_names_the_entry(data, path):
    with pytest.raises(InvalidInput) as caught:
        parse_memory_file(data)
    assert list(caught.value.errors) == [path]


def test_one_bad_entry_leaves_nothing_behind(workspace, by_alice):
    # The model rejects the second entry after the first one was created.
    bad = {"text": "T", "valid_from": "2026-03-08T10:00:00Z", "valid_until": "2026-03-07T10:00:00Z"}
    with pytest.raises(InvalidInput):
        import_memories(workspace, [TEXTS[0], bad], by=by_alice)
    assert list_texts(workspace) == []


def test_a_file_is_imported_through_the_api(admin, workspace):
    answer = admin.post("memories:import", [TEXTS[0], {"content": TEXTS[1], "id": 3}, TEXTS[0]])
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert (body["created_count"], body["skipped_count"], body["ignored_keys"]) == (2, 1, ["id"])
    assert [(row["index"], row["text"], row["status"]) for row in body["skipped"]] == [
        (2, TEXTS[0], "active")
    ]
    events = AuditEvent.objects.in_workspace(workspace).filter(kind="memory", verb="created")
    assert events.count() == 2


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (["Fine.", 7], "/1"),
        ({"memories": ["Fine.", {"text": "x" * 2_001}]}, "/memories/1/text"),
        (["Fine.", {"note": "x"}], "/1"),
        ({"memories": [{"text": "T", "valid_from": "soon"}]}, "/memories/0/valid_from"),
    ],
)
def test_the_api_points_at_the_bad_entry(admin, workspace, body, pointer):
    answer = admin.post("memories:import", body)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert list_texts(workspace) == []


def test_bots_and_keys_for_some_agents_cannot_import(key_for, workspace, alice):
    make_agent(workspace, "mira")
    for key in (
        key_for(workspace, alice, BOT, verbs=["read", "write", "activate"]),
        key_for(workspace, alice, agents=["mira"]),
        key_for(workspace, alice, verbs=["read"]),
    ):
        assert key.post("memories:import", TEXTS).status_code == 403
    assert list_texts(workspace) == []


def test_the_page_imports_an_upload_and_lists_the_result(as_alice, workspace):
    make_memory(workspace, TEXTS[0])
    url = f"/w/{workspace.slug}/memories/import/"
    assert "Import memories.json" in as_alice.get(f"/w/{workspace.slug}/memories/").content.decode()
    upload = SimpleUploadedFile("memories.json", json.dumps([*TEXTS, "<b>Bold.</b>"]).encode())
    page = as_alice.post(url, {"file": upload})
    text = page.content.decode()
    assert page.status_code == 200
    assert "2 memories created" in text
    assert "1 entry skipped" in text
    assert "&lt;b&gt;Bold." in text
    assert list_texts(workspace) == [*TEXTS, "<b>Bold.</b>"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('["Fine.", 7]', "[1]: Expected text or an object."),
        ('{"memories": [{"text": 7}]}', "memories[0].text: Must be text."),
        ("[", "This JSON cannot be imported."),
        ('["\\ud800"]', "This JSON cannot be imported."),
        ("[" * 5_000, "This JSON cannot be imported."),
        ("", "Choose a file or paste its text."),
    ],
)
def test_the_page_shows_what_is_wrong(as_alice, workspace, text, message):
    page = as_alice.post(f"/w/{workspace.slug}/memories/import/", {"text": text})
    assert (page.status_code, message in page.content.decode()) == (422, True), page.content.decode()
    assert list_texts(workspace) == []


def test_viewers_cannot_import(workspace):
    viewer = make_user("Vera")
    join(workspace, viewer, Role.VIEWER)
    page = signed_in(viewer).post(f"/w/{workspace.slug}/memories/import/", {"text": json.dumps(TEXTS)})
    assert page.status_code == 403
    assert list_texts(workspace) == []


def test_imported_memories_reach_the_prompt_of_a_nova_agent(admin, workspace):
    stage = make_stage(workspace, layout="nova")
    admin.post("memories:import", {"memories": TEXTS})
    rebuild_agents(workspace, [stage.agent.pk])
    lines = [line for line in stage.fetch().text.splitlines() if line.startswith("- ")]
    assert set(lines) >= {f"- {text}" for text in TEXTS}
