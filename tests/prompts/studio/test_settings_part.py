"""Prompt settings in the Studio: every level is a part, previewed and reviewed like any other."""

from typing import Any
from urllib.parse import urlencode

import pytest

from personas.models import Channel, Revision
from prompts.models import PromptSettings
from prompts.publishing.settings.services import get_or_build_level
from tests.factories import make_workspace
from tests.personas.api.prompts_stage import Deck
from tests.personas.api.shared_deck import (  # noqa: F401  # fixtures
    ashore,
    shared_alice,
    shared_bob,
    shared_deck,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture(name="keys")
def keys_of_levels(deck: Deck) -> list[str]:
    agent, channel = deck.agents[0].pk, Channel.objects.in_workspace(deck.workspace).get(slug="deck").pk
    return [f"prompt-{agent}-{channel}", f"channel-{channel}", f"agent-{agent}", "workspace"]


def studio_url(deck: Deck, key: str, page: str = "") -> str:
    query = urlencode({"part": f"prompt-settings:{key}", "channel": "deck"})
    return f"/w/{deck.workspace.slug}/studio/pilot/{page}?{query}"


def test_every_level_is_offered_and_opens(as_bob: Any, deck: Deck, keys: list[str]) -> None:
    for key in keys:
        answer = as_bob.get(studio_url(deck, key))
        assert answer.status_code == 200
        html = answer.content.decode()
        for name in ("mission", "signature", "sample_data", "hidden", "section_limits"):
            assert f'name="{name}"' in html, (key, name)
        for other in keys:
            assert f"part=prompt-settings%3A{other}" in html


def test_a_new_level_is_previewed_reviewed_and_saved(as_bob: Any, deck: Deck, keys: list[str]) -> None:
    values = {"mission": "Land on the moon.", "revision": "0"}
    preview = as_bob.post(studio_url(deck, keys[0], "preview/"), values)
    assert "Land on the moon." in preview.content.decode()
    assert not PromptSettings.objects.in_workspace(deck.workspace).exists()
    review = as_bob.post(studio_url(deck, keys[0], "review/"), values, follow=True)
    assert "(1 prompt)" in review.content.decode()
    saved = as_bob.post(studio_url(deck, keys[0], "review/"), {"apply": "1", "message": "Moon"}, follow=True)
    assert saved.status_code == 200
    row = PromptSettings.objects.in_workspace(deck.workspace).get()
    assert (row.level_key, row.mission, row.revision) == (keys[0], "Land on the moon.", 1)
    assert Revision.objects.in_workspace(deck.workspace).get(kind=row.kind).message == "Moon"


def test_stored_settings_are_edited_and_the_change_can_be_undone(
    as_bob: Any, deck: Deck, keys: list[str]
) -> None:
    base = f"/w/{deck.workspace.slug}/prompt-settings/"
    for number, mission in enumerate(("Land.", "Start.")):
        as_bob.post(studio_url(deck, keys[2], "review/"), {"mission": mission, "revision": str(number)})
        page = as_bob.post(studio_url(deck, keys[2], "review/"), {"apply": "1"}, follow=True)
    assert f"{base}levels/{keys[2]}/history/1/restore/" in page.content.decode()
    assert "Start." in as_bob.get(f"{base}levels/{keys[2]}/history/2/").content.decode()
    assert as_bob.get(f"{base}levels/{keys[2]}/history/").status_code == 200
    as_bob.post(f"{base}levels/{keys[2]}/history/1/restore/", {"expected": "2"})
    row = PromptSettings.objects.in_workspace(deck.workspace).get()
    assert (row.mission, row.revision) == ("Land.", 3)


def test_an_invalid_value_is_named_while_typing(as_bob: Any, deck: Deck, keys: list[str]) -> None:
    values = {"sample_data": "{oops", "revision": "0"}
    answer = as_bob.post(studio_url(deck, keys[0], "preview/"), values)
    assert answer.status_code == 422
    assert "This is not valid JSON" in answer.content.decode()


def test_unknown_levels_are_404(as_bob: Any, deck: Deck, keys: list[str]) -> None:
    for key in (
        "",
        "planet-1",
        "agent",
        "agent-x",
        "agent-999999999",
        "workspace-1",
        "prompt-1",
        "agent-1-2",
    ):
        assert as_bob.get(studio_url(deck, key)).status_code == 404, key
    assert as_bob.post(f"/w/{deck.workspace.slug}/impact/prompt-settings/").status_code == 404


def test_a_level_of_another_workspace_is_not_found(deck: Deck, mallory: Any, keys: list[str]) -> None:
    elsewhere = make_workspace("Elsewhere", owner=mallory)
    assert [get_or_build_level(elsewhere, key) for key in keys[:3]] == [None, None, None]
    level = get_or_build_level(elsewhere, "workspace")
    assert level is not None
    assert (level.workspace, level._state.adding) == (elsewhere, True)


def test_the_impact_panel_of_a_level(as_bob: Any, deck: Deck, keys: list[str]) -> None:
    path = f"/w/{deck.workspace.slug}/impact/prompt-settings/{keys[3]}/"
    form = as_bob.get(f"/w/{deck.workspace.slug}/prompt-settings/workspace/").content.decode()
    assert f'hx-post="{path}"' in form
    answer = as_bob.post(path, {"mission": "Land.", "revision": "0"})
    assert answer.status_code == 200
    assert "Changes 2 prompts for 2 agents" in answer.content.decode()
