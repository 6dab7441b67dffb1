"""Messages of the API say what is wrong and where."""

import pytest

from tests.api_client import Api
from tests.personas.api.prompts_stage import (  # noqa: F401  # some are fixtures
    Deck,
    good,
    keys_of_alice,
    problem,
)
from tests.personas.api.shared_deck import (  # noqa: F401  # fixtures
    ashore,
    shared_alice,
    shared_bob,
    shared_deck,
    shared_workspace,
)

pytestmark = pytest.mark.django_db


def test_an_invalid_idempotency_key_names_the_header(admin: Api, deck: Deck) -> None:
    answer = admin.post("memories", {"text": "Tea."}, Idempotency_Key="a b")
    assert answer.status_code == 400
    assert answer.json()["detail"] == ("Idempotency-Key: Send up to 255 printable characters without spaces.")


def test_a_body_of_another_type_names_the_header(admin: Api, deck: Deck) -> None:
    answer = admin.call("POST", "memories", b"text=Tea.", content_type="text/plain")
    assert answer.status_code == 415
    assert answer.json()["detail"].startswith("Content-Type: Send application/json")


@pytest.mark.parametrize("until", ["2026-12-24T10:00:00Z", "tomorrow", "2026-1-1"])
def test_a_date_time_in_place_of_a_date_is_named(admin: Api, deck: Deck, until: str) -> None:
    body = {"digest": "0" * 64, "reason": "Known.", "until": until}
    answer = admin.post("context-files/1:waive", body)
    assert answer.status_code == 422
    assert answer.json()["errors"] == [
        {"detail": "Must be a date, for example 2026-03-07.", "pointer": "/until"}
    ]


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("ledger/7", "No ledger row 7, or the limits of this key exclude it."),
        ("ledger/7/replay", "No ledger row 7, or the limits of this key exclude it."),
        ("releases/7", "No release 7 in this workspace."),
        ("agents/pilot/channels/deck/versions/77", "This prompt has no version 77."),
        (f"prompt-versions/{'0' * 64}", f"No version with the digest {'0' * 64}."),
        ("agents/pilot/channels/deck/labels/moon", "This prompt has no label “moon”."),
        ("verifications/7", "No verification 7 in this workspace."),
        ("prompt-settings/channels/moon", "No channel moon in this workspace."),
    ],
)
def test_a_404_names_what_is_missing(admin: Api, deck: Deck, path: str, detail: str) -> None:
    answer = admin.get(path)
    assert (answer.status_code, answer.json()["detail"]) == (404, detail)
