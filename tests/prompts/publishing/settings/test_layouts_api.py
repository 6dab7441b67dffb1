"""The list of layouts by API."""

import pytest

from personas.api_keys.format import BOT
from prompts.assembly.layouts import LAYOUTS
from tests.factories import make_agent

pytestmark = pytest.mark.django_db


def test_every_layout_is_listed_with_its_sections_in_order(admin):
    items = admin.get("layouts").json()["items"]
    assert [item["name"] for item in items] == list(LAYOUTS)
    for item in items:
        assert item["summary"]
        names = [part.name for part in LAYOUTS[item["name"]].parts]
        assert [section["name"] for section in item["sections"]] == names


def test_a_layout_of_the_list_can_be_given_to_an_agent(admin, workspace):
    make_agent(workspace, "pilot")
    for item in admin.get("layouts").json()["items"]:
        assert admin.patch("agents/pilot", {"layout": item["name"]}, "*").status_code == 200


def test_every_key_that_may_read_reads_it(key_for, workspace, alice):
    make_agent(workspace, "pilot")
    for options in ({}, {"agents": ["pilot"]}, {"labels": ["staging"]}):
        assert key_for(workspace, alice, **options).get("layouts").status_code == 200
    closed = [key_for(workspace, alice, kind=BOT), key_for(workspace, alice, verbs=["fetch"])]
    assert [key.get("layouts").status_code for key in closed] == [403, 403]
