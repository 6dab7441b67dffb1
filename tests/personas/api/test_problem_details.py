"""What refusals say: they name the field, the verb, the header and the record."""

from typing import Any

import pytest

from personas.actors import Actor
from personas.api.exception_handler import validation_problem
from personas.api.problems import FieldError
from personas.api_keys.format import ADMIN, BOT
from personas.members.services import change_role
from personas.models import Membership, MemoryStatus, User, Workspace
from personas.roles import Role
from tests.api_client import Api
from tests.factories import make_agent, make_soul

pytestmark = pytest.mark.django_db


def get_problem(response: Any, status: int) -> Any:
    assert response.status_code == status, response.content
    return response.json()


def list_places(body: Any) -> list[str]:
    return [error.get("pointer") or error.get("parameter") or error.get("header") for error in body["errors"]]


def test_each_missing_field_has_its_own_pointer(admin: Api) -> None:
    body = get_problem(admin.post("prompts:report", {}), 422)
    assert list_places(body) == ["/agent", "/channel", "/digest"]
    assert body["detail"] == "3 values are invalid: agent, channel, digest."


def test_the_detail_names_the_field(admin: Api) -> None:
    assert get_problem(admin.post("memories", {"text": "Tea.", "taks": 3}), 422)["detail"] == (
        "taks: unknown field."
    )
    body = get_problem(admin.get("memories?limit=many"), 422)
    assert body["detail"].startswith("limit: must be")


def test_a_place_is_written_as_people_do() -> None:
    error = FieldError("This field is required.", "/messages/0/a~1b")
    assert validation_problem([error]).detail == "messages[0].a/b: this field is required."
    assert (
        validation_problem([FieldError("IANA names only.", "/timezone")]).detail
        == "timezone: IANA names only."
    )
    assert validation_problem([FieldError("Broken.")]).detail == "Broken."


def test_a_text_of_spaces_is_empty(admin: Api) -> None:
    for text in ("", "   ", "\n\t"):
        assert list_places(get_problem(admin.post("memories", {"text": text}), 422)) == ["/text"]


def test_a_bot_that_cannot_activate_memories_is_told_so(
    key_for: Any, workspace: Workspace, alice: User
) -> None:
    bot = key_for(workspace, alice, BOT)
    body = get_problem(bot.post("memories", {"text": "Tea.", "status": "active"}), 422)
    assert list_places(body) == ["/status"]
    for status in ({}, {"status": "proposed"}):
        assert bot.post("memories", {"text": "Tea.", **status}).json()["status"] == MemoryStatus.PROPOSED
    trusted = key_for(workspace, alice, BOT, verbs=["write", "activate"])
    assert trusted.post("memories", {"text": "Tea.", "status": "active"}).json()["status"] == "active"


def test_a_403_names_the_verb(key_for: Any, workspace: Workspace, alice: User) -> None:
    cases = [
        (BOT, ["fetch"], "GET", "prompts", "read"),
        (BOT, ["read"], "POST", "memories", "write"),
        (ADMIN, ["read"], "POST", "souls", "write"),
        (ADMIN, ["read"], "GET", "keys", "manage"),
    ]
    for kind, verbs, method, path, verb in cases:
        response = key_for(workspace, alice, kind, verbs=verbs).call(method, path, {})
        assert f"requires the verb “{verb}”" in get_problem(response, 403)["detail"]
        assert response["WWW-Authenticate"].endswith(f'error="insufficient_scope", scope="{verb}"')


def test_a_403_names_the_kind_of_key_or_the_role(
    key_for: Any, workspace: Workspace, alice: User, bob: User
) -> None:
    bot = key_for(workspace, alice, BOT)
    assert "requires an admin key" in get_problem(bot.post("souls", {"name": "Calm"}), 403)["detail"]
    detail = get_problem(bot.get("souls"), 403)["detail"]
    assert "fetch or render the prompt" in detail
    assert "an admin key with the verb `read`" in detail
    member = key_for(workspace, bob)
    change_role(Membership.objects.in_workspace(workspace).get(user=bob), Role.VIEWER, by=Actor.person(alice))
    assert (
        "does not have the required role"
        in get_problem(member.post("souls", {"name": "Calm"}), 403)["detail"]
    )


def test_a_missing_key_and_an_invalid_one_are_told_apart(client: Any) -> None:
    missing = get_problem(Api("", client).get("souls"), 401)
    assert missing["detail"].startswith("Send a key in the header")
    invalid = Api("drm_bot_nonsense", client).get("souls")
    assert get_problem(invalid, 401)["detail"].startswith("This key is not valid")
    assert invalid["WWW-Authenticate"].endswith('error="invalid_token"')


def test_an_etag_without_quotes_is_named(admin: Api, workspace: Workspace) -> None:
    soul = make_soul(workspace, "Calm")
    body = get_problem(admin.patch(f"souls/{soul.slug}", {"text": "Be calm."}, "1"), 400)
    assert list_places(body) == ["If-Match"]
    assert 'for example "1"' in body["detail"]
    assert admin.patch(f"souls/{soul.slug}", {"text": "Be calm."}, 'W/"1"').status_code == 412
    assert admin.patch(f"souls/{soul.slug}", {"text": "Be calm."}, '"1"').status_code == 200


def test_a_compressed_body_is_refused_by_its_header(admin: Api) -> None:
    for encoding in ("gzip", "br"):
        response = admin.call("POST", "memories", b"\x1f\x8b\x08", Content_Encoding=encoding)
        assert list_places(get_problem(response, 415)) == ["Content-Encoding"]
        assert response["Accept-Encoding"] == "identity"
    plain = admin.call("POST", "memories", {"text": "Tea."}, Content_Encoding="identity")
    assert plain.status_code == 201


def test_a_404_names_the_record(admin: Api, key_for: Any, workspace: Workspace, alice: User) -> None:
    make_agent(workspace, "pilot")
    make_agent(workspace, "cook")
    assert get_problem(admin.get("agents/nobody"), 404)["detail"] == "No agent “nobody” in this workspace."
    assert get_problem(admin.get("memories/77"), 404)["detail"] == "No memory 77 in this workspace."
    narrow = key_for(workspace, alice, ADMIN, agents=["pilot"])
    problems = {slug: get_problem(narrow.get(f"agents/{slug}"), 404) for slug in ("cook", "nobody")}
    details = {body["detail"].replace(slug, "…") for slug, body in problems.items()}
    assert details == {"No agent “…” within the limits of this key."}
    detail = get_problem(admin.get("agents/pilot/channels/moon/versions"), 404)["detail"]
    assert detail == "The agent “pilot” has no prompt on the channel “moon”."


def test_an_unknown_time_zone_is_refused(admin: Api) -> None:
    response = admin.post("agents/pilot/channels/deck/prompt:render", {"timezone": "Mars/Olympus"})
    assert list_places(get_problem(response, 422)) == ["/timezone"]
