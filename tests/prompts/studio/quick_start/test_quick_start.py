"""The quick start: an agent with soul, channel and key from one form, its preview, and its first request."""

import re

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from personas.channels.models import BUILT_IN_CHANNELS
from personas.models import Agent, ApiKey, Channel, Soul
from prompts.models import PRODUCTION, LedgerEntry, PromptLabel
from prompts.studio.quick_start import secret_cookie
from tests.factories import PASSWORD, make_agent, make_channel, signed_in
from tests.module_fixtures import commits_heard

pytestmark = pytest.mark.django_db

URL = "/w/harbour/quick-start/"


@pytest.fixture
def channel(workspace) -> Channel:
    return Channel.objects.in_workspace(workspace).get(slug="web")


def start(client, **values: str):
    return client.post(
        URL, {"name": "Front Desk", "soul": "Be brief.", "channel": "web"} | values, follow=True
    )


def get_secret(page) -> str:
    match = re.search(r'id="secret" value="([^"]+)"', page.content.decode())
    assert match
    return match[1]


def test_one_form_creates_agent_soul_and_key_and_deploys_the_prompt(as_alice, workspace, channel):
    with commits_heard():
        page = start(as_alice)
    assert page.status_code == 200
    agent = Agent.objects.in_workspace(workspace).get()
    assert agent.soul
    assert (agent.slug, agent.soul.text) == ("front-desk", "Be brief.")
    assert PromptLabel.objects.in_workspace(workspace).filter(name=PRODUCTION).count() == 1
    key = ApiKey.objects.in_workspace(workspace).get()
    assert (key.name, key.scopes) == ("Front Desk", {"agents": ["front-desk"], "verbs": ["fetch", "render"]})
    assert page["Cache-Control"] == "no-store"
    text = page.content.decode()
    assert f"export DRAMATIS_KEY={get_secret(page)}" in text
    assert "/api/v1/agents/front-desk/channels/web/prompt" in text
    assert "Waiting for the first request…" in text


def test_the_page_turns_green_with_the_first_request(as_alice, workspace, channel):
    with commits_heard():
        page = start(as_alice)
    live = f"{URL}front-desk/web/live/"
    assert as_alice.get(live).status_code == 204
    bot = Client(headers={"Authorization": f"Bearer {get_secret(page)}"})
    assert bot.get("/api/v1/agents/front-desk/channels/web/prompt").status_code == 200
    assert LedgerEntry.objects.in_workspace(workspace).count() == 1
    answer = as_alice.get(live)
    assert (answer.status_code, "First request received" in answer.content.decode()) == (200, True)
    assert "hx-get" not in answer.content.decode()


def test_the_key_of_one_agent_fetches_no_other(as_alice, workspace, channel):
    with commits_heard():
        make_agent(workspace, "other", channels=[channel])
        page = start(as_alice)
    bot = Client(headers={"Authorization": f"Bearer {get_secret(page)}"})
    assert bot.get("/api/v1/agents/other/channels/web/prompt").status_code in (403, 404)


def test_an_editor_creates_the_agent_and_gets_no_key(as_bob, workspace, channel):
    page = start(as_bob)
    assert "Ask an owner or admin for an API key." in page.content.decode()
    assert not ApiKey.objects.in_workspace(workspace).exists()
    assert "Ask an owner or admin for an API key." in as_bob.get(f"{URL}front-desk/web/").content.decode()
    assert as_bob.post(f"{URL}front-desk/web/key/").status_code == 403


def test_without_a_recent_sign_in_the_key_needs_the_password_first(alice, workspace, channel):
    alice.set_password(PASSWORD)
    alice.save()
    client = Client()
    client.force_login(alice)
    page = start(client)
    assert "Create API key" in page.content.decode()
    assert "/accounts/reauthenticate/" in client.post(f"{URL}front-desk/web/key/")["Location"]
    assert not ApiKey.objects.in_workspace(workspace).exists()


def test_a_reload_sends_nothing_again_and_does_not_show_the_key(as_alice, workspace, channel):
    page = start(as_alice)
    assert page.redirect_chain == [(f"{URL}front-desk/web/", 302)]
    again = as_alice.get(page.request["PATH_INFO"])
    assert get_secret(page) not in again.content.decode()
    assert "Create API key" in again.content.decode()
    assert ApiKey.objects.in_workspace(workspace).count() == 1
    assert Agent.objects.in_workspace(workspace).count() == 1


def test_the_key_is_neither_in_the_url_nor_in_the_session(as_alice, workspace, channel):
    answer = as_alice.post(URL, {"name": "Front Desk", "soul": "", "channel": "web"})
    cookie = answer.cookies[secret_cookie.get_cookie_name()]
    assert (cookie["httponly"], cookie["samesite"], cookie["max-age"]) == (True, "Strict", 60)
    stored = f"{list(as_alice.session.items())} {list(Session.objects.values_list('session_data'))}"
    page = as_alice.get(answer["Location"])
    secret = get_secret(page)
    for text in (answer["Location"], cookie.value, stored):
        assert secret not in text
    # The page takes the key and the cookie away.
    assert page.cookies[secret_cookie.get_cookie_name()].value == ""
    assert "new_key" not in as_alice.session


def test_over_tls_the_cookie_is_bound_to_the_host(as_alice, channel, settings):
    settings.SESSION_COOKIE_SECURE = True
    answer = as_alice.post(URL, {"name": "Front Desk", "soul": "", "channel": "web"})
    cookie = answer.cookies["__Host-dramatis-new-key"]
    assert (cookie["secure"], cookie["path"]) == (True, "/")


@pytest.mark.parametrize("case", ["another page", "another session", "too late", "changed"])
def test_the_key_is_shown_by_its_own_page_only(as_alice, alice, channel, case, monkeypatch):
    make_agent(channel.workspace, "other", channels=[channel])
    answer = as_alice.post(URL, {"name": "Front Desk", "soul": "", "channel": "web"})
    client, url, name = as_alice, answer["Location"], secret_cookie.get_cookie_name()
    if case == "another page":
        url = f"{URL}other/web/"
    elif case == "another session":
        client = signed_in(alice)
        client.cookies[name] = answer.cookies[name].value
    elif case == "too late":
        monkeypatch.setattr(secret_cookie, "MAX_AGE_SECONDS", -1)
    else:
        client.cookies[name] = "x"
    page = client.get(url)
    assert page.status_code == 200
    assert 'id="secret"' not in page.content.decode()


def test_a_second_key_has_another_name(as_alice, workspace, channel):
    start(as_alice)
    page = as_alice.post(f"{URL}front-desk/web/key/", follow=True)
    assert get_secret(page) in page.content.decode()
    names = ApiKey.objects.in_workspace(workspace).order_by("pk").values_list("name", flat=True)
    assert list(names) == ["Front Desk", "Front Desk 2"]


def test_an_empty_soul_creates_none(as_alice, workspace, channel):
    assert start(as_alice, soul=" ").status_code == 200
    assert Agent.objects.in_workspace(workspace).get().soul is None
    assert not Soul.objects.in_workspace(workspace).exists()


def test_a_name_that_is_taken_gets_a_number_and_a_taken_slug_an_error(as_alice, workspace, channel):
    start(as_alice)
    start(as_alice)
    slugs = Agent.objects.in_workspace(workspace).order_by("pk").values_list("slug", flat=True)
    assert list(slugs) == ["front-desk", "front-desk-2"]
    page = start(as_alice, slug="front-desk")
    assert page.status_code == 422
    assert "slug" in page.context["form"].errors
    # Neither the agent nor its soul was created.
    assert Soul.objects.in_workspace(workspace).count() == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", ""), ("slug", "Not A Slug"), ("channel", "nowhere"), ("soul", "x" * 500_001), ("slug", "new")],
)
def test_invalid_values_are_reported_at_their_fields(as_alice, workspace, channel, field, value):
    page = start(as_alice, **{field: value})
    assert page.status_code == 422
    assert list(page.context["form"].errors) == [field]
    assert not Agent.objects.in_workspace(workspace).exists()
    assert (
        as_alice.post(f"{URL}preview/", {"name": "Desk", "channel": "web"} | {field: value}).status_code
        == 204
    )


@pytest.mark.django_db(transaction=True)
def test_the_preview_shows_the_prompt_and_saves_nothing(as_bob, workspace, channel):
    values = {"name": "Front Desk", "soul": "Be brief and kind.", "channel": "web"}
    page = as_bob.post(f"{URL}preview/", values)
    assert page.status_code == 200
    assert "Be brief and kind." in page.content.decode()
    assert not Agent.objects.in_workspace(workspace).exists()
    assert not Soul.objects.in_workspace(workspace).exists()


def test_an_agent_without_the_channel_has_no_connect_page(as_alice, workspace, channel):
    make_agent(workspace, "silent")
    assert as_alice.get(f"{URL}silent/web/").status_code == 404
    assert as_alice.get(f"{URL}silent/web/live/").status_code == 404


def test_the_first_choice_is_a_channel_that_every_workspace_has(as_alice, workspace, channel):
    make_channel(workspace, "attic")
    assert as_alice.get(URL).context["form"]["channel"].value() == "web"
    assert "web" in BUILT_IN_CHANNELS
