"""IDENTITY.md, SOUL.md and USER.md by API: import, export, replace."""

import pytest

from personas.api_keys.format import BOT
from personas.models import Identity, Revision, Soul, UserProfile
from tests.factories import make_identity, make_profile, make_soul
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
IDENTITY = "---\nname: Mira\nemoji: 🦊\nteam: blue\n---\n\nKnows every trail.\n"


def put(api, path, text, etag="*", **headers):
    body = text if isinstance(text, bytes) else text.encode()
    return api.call("PUT", path, body, If_Match=etag, content_type="text/markdown", **headers)


def test_an_identity_comes_back_as_the_file_it_was_imported_from(admin):
    created = admin.post("identities:import", {"name": "Fox", "text": IDENTITY})
    assert created.status_code == 201, created.content
    assert created["Location"] == "/api/v1/identities/fox"
    assert (created.json()["display_name"], created.json()["extra"]) == ("Mira", "team: blue\n")
    file = admin.get("identities/fox/file")
    assert file["Content-Type"] == "text/markdown; charset=utf-8"
    assert file["Content-Disposition"] == 'attachment; filename="IDENTITY.md"'
    assert file["ETag"].startswith(created["ETag"].removesuffix(chr(34)))
    assert file.content.decode() == IDENTITY


def test_a_file_replaces_the_content_of_a_record_and_keeps_its_name(admin, workspace):
    fox = make_identity(workspace, "Fox", display_name="Old", vibe="dry")
    answer = put(admin, f"identities/{fox.slug}/file", IDENTITY, '"1"')
    assert answer.status_code == 200, answer.content
    fox = Identity.objects.in_workspace(workspace).get(pk=fox.pk)
    assert (fox.name, fox.display_name, fox.vibe, fox.revision) == ("Fox", "Mira", "", 2)
    revision = Revision.objects.in_workspace(workspace).get(number=2, object_id=fox.pk)
    assert revision.message == "From IDENTITY.md"
    assert put(admin, f"identities/{fox.slug}/file", IDENTITY, '"1"').status_code == 412


def test_souls_and_user_profiles_have_their_files_too(admin, workspace):
    soul, profile = make_soul(workspace), make_profile(workspace)
    assert put(admin, f"souls/{soul.slug}/file", "\ufeffBe brief.\r\n").status_code == 200
    assert Soul.objects.in_workspace(workspace).get(pk=soul.pk).text == "Be brief.\n"
    text = "---\nname: Ada\ntimezone: Europe/Oslo\n---\n\nPrefers tea.\n"
    assert put(admin, f"user-profiles/{profile.slug}/file", text).status_code == 200
    assert UserProfile.objects.in_workspace(workspace).get(pk=profile.pk).timezone == "Europe/Oslo"
    assert admin.get(f"user-profiles/{profile.slug}/file").content.decode() == text
    assert admin.get(f"souls/{soul.slug}/file").content.decode() == "Be brief.\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("---\nname: [a, b]\n---\n", "Line 2"),
        ("---\nname: " + "x" * 200 + "\n---\n", "name"),
        ("a\x00b", "text"),
    ],
)
def test_an_invalid_file_changes_nothing_and_the_problem_says_where(text, word, admin, workspace):
    fox = make_identity(workspace, "Fox", display_name="Old")
    answer = put(admin, f"identities/{fox.slug}/file", text)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), answer.content
    assert all("pointer" not in error for error in answer.json()["errors"])
    imported = admin.post("identities:import", {"name": "New", "text": text})
    assert imported.status_code == 422
    assert Identity.objects.in_workspace(workspace).get().display_name == "Old"


def test_only_utf_8_markdown_is_accepted(admin, workspace):
    soul = make_soul(workspace, text="Before.")
    path = f"souls/{soul.slug}/file"
    assert put(admin, path, b"\xff\xfe").status_code == 400
    as_json = admin.call("PUT", path, {"text": "After."}, If_Match="*")
    assert (as_json.status_code, as_json.json()["detail"]) == (415, "Content-Type: Send text/markdown.")
    assert put(admin, path, "x" * 300_000).status_code == 422
    assert Soul.objects.in_workspace(workspace).get().text == "Before."


def test_a_change_needs_if_match(admin, workspace):
    soul = make_soul(workspace)
    answer = admin.call("PUT", f"souls/{soul.slug}/file", b"After.", content_type="text/markdown")
    assert answer.status_code == 428


def test_bots_neither_read_nor_write_files(key_for, workspace, alice):
    soul, bot = make_soul(workspace), key_for(workspace, alice, BOT)
    assert bot.get(f"souls/{soul.slug}/file").status_code == 403
    assert put(bot, f"souls/{soul.slug}/file", "After.").status_code == 403
    assert bot.post("souls:import", {"name": "New", "text": "Hi."}).status_code == 403


def test_accept_is_negotiated(admin, workspace):
    soul = make_soul(workspace)
    for accept in ("text/markdown", "*/*", "text/*"):
        assert admin.get(f"souls/{soul.slug}/file", Accept=accept).status_code == 200
    assert admin.get(f"souls/{soul.slug}/file", Accept="image/png").status_code == 406
