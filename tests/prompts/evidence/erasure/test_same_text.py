"""An erasure names the other records and files that contain the text, and erases those that are chosen."""

import pytest

from personas.models import Erasure, Memory
from personas.records.services import archive_record, edit_record
from prompts.evidence.erasure import same_text
from prompts.evidence.erasure.same_text import find_same_text
from prompts.evidence.erasure.services import erase_record
from tests.factories import (
    BY,
    make_agent,
    make_channel,
    make_memory,
    make_profile,
    make_soul,
    make_source,
    refreshed,
)
from tests.prompts.evidence.erasure.guesses import find_columns_with
from tests.prompts.evidence.erasure.test_erasure import SECRET
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_elsewhere,
    shared_mallory,
    shared_stage,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]


def set_stage(shared: SharedCast) -> None:
    workspace = shared.workspace
    shared.agent = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    shared.memory = make_memory(workspace, SECRET, source="Overheard")


def list_matches(record) -> list[tuple[str, int, bool, bool]]:
    return [(one.kind, one.id, one.is_current, one.is_erasable) for one in find_same_text(record)]


def test_records_of_every_kind_with_the_text_are_named(stage):
    workspace = stage.workspace
    twin = make_memory(workspace, SECRET, agent=stage.agent)
    profile = make_profile(workspace, "Guest", notes=f"Likes tea. {SECRET}")
    soul = make_soul(workspace, text=f"Be calm.\n\n{SECRET}\n")
    make_memory(workspace, "Mrs Penhaligon likes tea.")
    assert list_matches(stage.memory) == [
        ("memory", twin.pk, True, True),
        ("user_profile", profile.pk, True, True),
        ("soul", soul.pk, True, False),
    ]
    assert list_matches(profile)[0] == ("memory", stage.memory.pk, True, True)


def test_files_with_the_text_are_named(stage, tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    (tmp_path / "AGENTS.md").write_text(f"# House rules\n\n* {SECRET}\n")
    source = make_source(stage.workspace, tmp_path)
    refreshed(source)
    [match] = find_same_text(stage.memory)
    assert (match.kind, match.name, match.is_erasable) == ("context_file", "AGENTS.md", False)
    assert "/files/" in match.url


@pytest.mark.parametrize(
    "text",
    [
        "mrs penhaligon keeps her **spare key** under\nthe third flowerpot",
        "- MRS PENHALIGON — keeps her spare key, under the third flowerpot!",
        "Remember: Mrs Penhaligon keeps her spare key under the third flowerpot. Always.",
    ],
)
def test_texts_are_compared_by_their_words(stage, text):
    other = make_memory(stage.workspace, text)
    assert list_matches(stage.memory) == [("memory", other.pk, True, True)]


def test_a_single_sentence_of_the_text_is_enough(stage):
    memory = make_memory(stage.workspace, f"Likes tea. {SECRET} Deaf in one ear.")
    assert list_matches(memory) == [("memory", stage.memory.pk, True, True)]
    assert list_matches(stage.memory) == [("memory", memory.pk, True, True)]


def test_archived_records_and_earlier_revisions_are_named_too(stage):
    archived = archive_record(make_memory(stage.workspace, SECRET), by=BY)
    edited = make_memory(stage.workspace, SECRET)
    edit_record(edited, {"text": "Likes tea."}, expected=edited.revision, by=BY)
    assert list_matches(stage.memory) == [
        ("memory", archived.pk, True, True),
        ("memory", edited.pk, False, True),
    ]


def test_records_of_another_workspace_and_erased_ones_are_not_named(stage, elsewhere):
    make_memory(elsewhere, SECRET)
    erased = make_memory(stage.workspace, SECRET)
    erase_record(erased, reason="She asked for it.", by=BY)
    assert list_matches(stage.memory) == []
    assert list_matches(Memory.objects.in_workspace(stage.workspace).get(pk=erased.pk)) == []


def test_the_api_names_them_and_erases_those_that_are_sent(stage, admin):
    workspace = stage.workspace
    twin, soul = make_memory(workspace, SECRET), make_soul(workspace, text=SECRET)
    record = {"kind": "memory", "record": stage.memory.pk}
    preview = admin.post("erasures:preview", record).json()
    assert preview["versions"] > 0
    assert [(one["kind"], one["record"], one["is_erasable"]) for one in preview["also_contains"]] == [
        ("memory", twin.pk, True),
        ("soul", soul.pk, False),
    ]
    assert not Erasure.objects.in_workspace(workspace).exists()
    also = [{"kind": "memory", "record": twin.pk}, record]
    response = admin.post("erasures", record | {"reason": "She asked for it.", "also_erase": also})
    body = response.json()
    assert response.status_code == 201, body
    assert [(one["kind"], one["record"], one["status"]) for one in body["also_erased"]] == [
        ("memory", twin.pk, "done")
    ]
    assert [(one["kind"], one["record"]) for one in body["also_contains"]] == [("soul", soul.pk)]
    left = find_columns_with("third flowerpot")
    assert {column.partition(".")[0].strip('"') for column in left} <= {
        "personas_soul",
        "personas_revision",
    } | {"personas_auditevent"}


def test_a_record_of_another_workspace_cannot_be_erased_along(stage, admin, elsewhere):
    foreign = make_memory(elsewhere, SECRET)
    body = {"kind": "memory", "record": stage.memory.pk, "reason": "She asked for it."}
    response = admin.post("erasures", body | {"also_erase": [{"kind": "memory", "record": foreign.pk}]})
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (422, "/also_erase/0/record")
    assert not Erasure.objects.in_workspace(stage.workspace).exists()
    assert not Erasure.objects.in_workspace(elsewhere).exists()


def test_the_page_offers_to_erase_them(stage, as_alice):
    workspace = stage.workspace
    twin, soul = make_memory(workspace, SECRET), make_soul(workspace, text=SECRET)
    path = f"/w/{workspace.slug}/erasures/memories/{stage.memory.pk}/"
    page = as_alice.get(path).content.decode()
    assert f'value="memory:{twin.pk}"' in page
    assert f"/souls/{soul.slug}/" in page
    assert f"soul:{soul.pk}" not in page
    form = {"reason": "She asked for it.", "sure": "on"}
    refused = as_alice.post(path, form | {"also": [f"soul:{soul.pk}"]})
    assert refused.status_code == 422
    assert not Erasure.objects.in_workspace(workspace).exists()
    assert as_alice.post(path, form | {"also": [f"memory:{twin.pk}"]}).status_code == 302
    erased = Erasure.objects.in_workspace(workspace).values_list("kind", "object_id")
    assert set(erased) == {("memory", stage.memory.pk), ("memory", twin.pk)}


@pytest.mark.planted
def test_a_search_for_equal_bytes_only_is_detected(stage, monkeypatch):
    monkeypatch.setattr(
        same_text, "contains_phrase", lambda text, phrases: any(one.text in text for one in phrases)
    )
    with pytest.raises(AssertionError):
        test_texts_are_compared_by_their_words(
            stage, "MRS PENHALIGON keeps her spare key under the third flowerpot"
        )
