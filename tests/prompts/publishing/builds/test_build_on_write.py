"""Rebuild counts in API response headers; needs committed rows."""

from typing import Any

import pytest
from django.test import Client

from personas.models import Agent
from tests.api_client import Api
from tests.personas.api.prompts_stage import Deck, a_deck  # noqa: F401  # one is a fixture


@pytest.mark.django_db(transaction=True)
def test_a_response_says_how_many_prompts_were_built(
    admin: Api, deck: Deck, settings: Any, client: Client
) -> None:
    etag = admin.get(f"souls/{deck.soul.slug}")["ETag"]
    changed = admin.patch(f"souls/{deck.soul.slug}", {"text": "Be wise."}, etag)
    assert changed["Dramatis-Prompts-Built"] == "2"
    assert "Dramatis-Prompts-Pending" not in changed
    settings.DRAMATIS_BUILD_AT_ONCE = 0
    changed = admin.patch(f"souls/{deck.soul.slug}", {"text": "Be kind."}, changed["ETag"])
    assert changed["Dramatis-Prompts-Pending"] == "2"
    assert "Dramatis-Prompts-Built" not in admin.get("souls")
    assert Agent.objects.in_workspace(deck.workspace).count() == 2
