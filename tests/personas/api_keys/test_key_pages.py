"""Pages of API keys: list, create, rotate, revoke."""

import html
import json
import re
from datetime import timedelta

import pytest
from django.apps import apps
from django.conf import settings
from django.utils import timezone

from personas.actors import Actor
from personas.api_keys import scopes as api_keys_scopes
from personas.api_keys import views as pages
from personas.api_keys.format import ADMIN, is_well_formed_key, key_digest
from personas.api_keys.services import create_key, revoke_key, save_last_used
from personas.models import AgentChannel, ApiKey
from personas.roles import Role
from prompts.publishing.labels.selectors import list_label_names
from prompts.publishing.labels.services import move_label
from tests.factories import BY, PASSWORD, join, make_agent, make_channel, make_user, signed_in
from tests.prompts.serving.serving_stage import make_stage
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

SECRET = re.compile(r"drm_(?:bot|admin)_[0-9A-Za-z]{36}")


@pytest.fixture
def home(workspace):
    return f"/w/{workspace.slug}/keys/"


@pytest.fixture
def key(workspace, by_alice):
    return create_key(workspace, "Reception", {}, by=by_alice)[0]


@pytest.fixture
def spy(elsewhere):
    return make_agent(elsewhere, "spy")


def day(days: int) -> str:
    return (timezone.now() + timedelta(days=days)).date().isoformat()


def form_data(**values):
    """The fields of the form; the key can access all that `values` do not limit."""
    scopes = ("agents", "channels", "labels")
    access = {f"{name}_access": "selected" if values.get(name) else "all" for name in scopes}
    return {"name": "Desk", "kind": "bot", "verbs": ["fetch"], "expires_at": day(30)} | access | values


def page_text(answer):
    return html.unescape(answer.content.decode())


def secret_in(answer):
    [secret] = set(SECRET.findall(page_text(answer)))
    return secret


def keys_in(workspace):
    return ApiKey.objects.in_workspace(workspace)


# --- the list ------------------------------------------------------------------------------------------


def test_the_list_shows_everything_about_a_key_but_the_secret(as_alice, home, workspace, by_alice):
    make_agent(workspace, "pilot")
    scopes = {"verbs": ["render", "fetch"], "agents": ["pilot"], "labels": ["canary"]}
    key, secret = create_key(workspace, "Front desk", scopes, by=by_alice)
    save_last_used(workspace, {key.pk: timezone.now()})
    page = page_text(as_alice.get(home))
    for text in (
        "Front desk",
        secret[:14],
        "Fetch, render",
        "Agent pilot",
        "Label canary",
        "Alice",
        "Active",
    ):
        assert text in page
    assert secret not in page
    assert key.digest not in page


@pytest.mark.slow
def test_the_list_filters_active_and_ended_keys(as_alice, home, workspace, by_alice):
    for name, change in {
        "Gone": {"revoked_at": timezone.now()},
        "Late": {"expires_at": timezone.now() - timedelta(seconds=1)},
        "Soon": {"expires_at": timezone.now() + timedelta(days=2)},
        "Fine": {},
    }.items():
        key, _ = create_key(workspace, name, {}, by=by_alice)
        keys_in(workspace).filter(pk=key.pk).update(**change) if change else None
    names_by_query = {
        "": {"Soon", "Fine"},
        "?shelf=ended": {"Gone", "Late"},
        "?shelf=all&q=o": {"Gone", "Soon"},
    }
    for query, names in names_by_query.items():
        page = page_text(as_alice.get(home + query))
        assert {name for name in ("Gone", "Late", "Soon", "Fine") if f'dir="auto">{name}<' in page} == names
    assert "Expires soon" in page_text(as_alice.get(home))
    assert {"Expired", "Revoked"} <= set(re.findall(r"\w+", page_text(as_alice.get(home + "?shelf=ended"))))


def test_invalid_filters_in_the_url_do_no_harm(as_alice, home):
    for query in ("?shelf=moon", "?kind=root", "?q=%00", "?page=999999999999999999999", "?q=" + "x" * 5_000):
        assert as_alice.get(home + query).status_code == 200


def test_an_empty_list_leads_to_the_first_key(as_alice, home):
    assert "Create key" in page_text(as_alice.get(home))


def test_the_list_runs_the_same_queries_for_many_keys_as_for_one(
    as_alice, home, workspace, by_alice, django_assert_max_num_queries
):
    for number in range(15):
        create_key(workspace, f"Key {number}", {}, by=by_alice)
    # Every page queries the session, the user and their workspaces.
    with django_assert_max_num_queries(8 + 3):
        as_alice.get(home)


# --- a new key -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("stopped_clock")
def test_a_new_key_is_shown_once_and_works_at_once(as_alice, home, workspace, alice):
    make_agent(workspace, "pilot")
    make_channel(workspace, "deck")
    answer = as_alice.post(
        f"{home}new/",
        form_data(agents=["pilot"], channels=["deck"], labels=["production"], verbs=["read", "fetch"]),
    )
    assert answer.status_code == 200
    secret = secret_in(answer)
    assert is_well_formed_key(secret)
    key = keys_in(workspace).get(digest=key_digest(secret))
    assert (key.name, key.kind, key.created_by) == ("Desk", "bot", alice)
    assert key.scopes == {
        "verbs": ["fetch", "read"],
        "agents": ["pilot"],
        "channels": ["deck"],
        "labels": ["production"],
    }
    assert key.expires_at.date().isoformat() in {day(30), day(31)}


def test_the_secret_is_not_stored_anywhere(as_alice, home):
    answer = as_alice.post(f"{home}new/", form_data())
    assert answer["Cache-Control"] == "no-store"
    secret = secret_in(answer)
    for row in [row for model in apps.get_models() for row in model._base_manager.values()]:
        assert secret not in json.dumps(row, default=str)
    assert secret not in json.dumps(dict(as_alice.session), default=str)
    assert not any(secret in str(cookie) for cookie in as_alice.cookies.values())
    assert secret not in page_text(as_alice.get(home))


@pytest.mark.planted
def test_a_secret_stored_in_the_session_is_detected(as_alice, home, monkeypatch):
    """Django's messages, for example, are stored in the session until they are displayed."""
    show_once = pages.render_secret_once

    def careless(request, key, secret, before=None):
        request.session["last"] = secret
        return show_once(request, key, secret, before)

    monkeypatch.setattr(pages, "render_secret_once", careless)
    with pytest.raises(AssertionError):
        test_the_secret_is_not_stored_anywhere(as_alice, home)


def test_the_example_names_a_prompt_that_the_key_may_fetch(as_alice, home, workspace):
    agents = [make_agent(workspace, slug) for slug in ("aardvark", "pilot")]
    deck = make_channel(workspace, "deck")
    for agent in agents:
        AgentChannel(workspace=workspace, agent=agent, channel=deck, position=0).save()
    page = page_text(as_alice.post(f"{home}new/", form_data(agents=["pilot"], labels=["latest"])))
    url = f"{settings.PUBLIC_URL}/api/v1/agents/pilot/channels/deck/prompt?label=latest"
    assert f'curl --fail-with-body -H "Authorization: Bearer $DRAMATIS_KEY" "{url}"' in page
    assert f'url = "{url}"' in page
    assert re.search(r"export DRAMATIS_KEY=drm_bot_\w{36}", page)
    page = page_text(as_alice.post(f"{home}new/", form_data(name="Reader", verbs=["read"])))
    assert f'"{settings.PUBLIC_URL}/api/v1/agents"' in page


def test_without_agents_the_example_has_placeholders(as_alice, home):
    page = page_text(as_alice.post(f"{home}new/", form_data()))
    assert "/agents/AGENT/channels/CHANNEL/prompt" in page
    assert "Replace AGENT and CHANNEL" in page


def test_all_actions_of_a_kind_without_limits_are_stored_as_empty_scopes(as_alice, home, workspace):
    as_alice.post(f"{home}new/", form_data(verbs=["fetch", "render", "read", "write"]))
    assert keys_in(workspace).get().scopes == {}


def test_an_admin_key_acts_for_its_creator(as_alice, home, workspace, alice):
    answer = as_alice.post(f"{home}new/", form_data(kind="admin", verbs=["manage", "read"]))
    assert secret_in(answer).startswith("drm_admin_")
    key = keys_in(workspace).get()
    assert (key.kind, key.created_by, key.scopes) == (ADMIN, alice, {"verbs": ["manage", "read"]})
    page = page_text(as_alice.get(f"{home}{key.pk}/"))
    assert "Read, manage sources, manage keys, manage members" in page


WRONG: list[tuple[dict[str, object], str, str]] = [
    ({"name": ""}, "name", "This field is required."),
    ({"name": "Reception"}, "name", "already"),
    ({"name": "two\nlines"}, "name", ""),
    ({"name": "n" * 81}, "name", "80 characters"),
    ({"kind": "root"}, "kind", "Select a valid choice"),
    ({"kind": ""}, "kind", "This field is required."),
    ({"verbs": []}, "verbs", "Select at least one permission"),
    ({"verbs": ["fly"]}, "verbs", "Select a valid choice"),
    ({"verbs": ["approve"]}, "verbs", "cannot have the “approve” permission. Use an admin key"),
    ({"agents": ["spy"]}, "agents", "Select a valid choice"),
    ({"channels": ["moon"]}, "channels", "Select a valid choice"),
    ({"labels": ["no-such-label"]}, "labels", "Select a valid choice"),
    ({"expires_at": ""}, "expires_at", "This field is required."),
    ({"expires_at": "soon"}, "expires_at", "Enter a valid date."),
    ({"expires_at": "9999-12-31"}, "expires_at", "at most 365 days"),
    ({"expires_at": "0001-01-01"}, "expires_at", "in the future"),
]


@pytest.mark.slow
@pytest.mark.usefixtures("key", "spy")
def test_invalid_input_is_reported_on_its_field_and_creates_nothing(as_alice, home):
    for values, field, complaint in WRONG:
        answer = as_alice.post(f"{home}new/", form_data(**values))
        assert answer.status_code == 422, values
        assert list(answer.context["form"].errors) == [field], values
        assert complaint in str(answer.context["form"].errors[field]), values
        assert f'id="id_{field}_error"' in page_text(answer), values
        assert not SECRET.search(page_text(answer)), values
        assert ApiKey.unscoped.count() == 1, values


@pytest.mark.usefixtures("stopped_clock")
@pytest.mark.parametrize("days", [0, 364, 365])
def test_every_day_within_a_year_can_be_the_last_day(as_alice, home, workspace, days):
    assert as_alice.post(f"{home}new/", form_data(expires_at=day(days))).status_code == 200
    left = keys_in(workspace).get().expires_at - timezone.now()
    assert timedelta(0) < left <= timedelta(days=365)


def test_only_choices_of_this_workspace_are_offered(as_alice, home, workspace, elsewhere):
    make_agent(workspace, "pilot")
    make_agent(elsewhere, "spy")
    make_channel(elsewhere, "moon")
    form = as_alice.get(f"{home}new/").context["form"]
    assert [slug for slug, _ in form.fields["agents"].choices] == ["pilot"]
    assert "moon" not in dict(form.fields["channels"].choices)
    assert [name for name, _ in form.fields["labels"].choices] == ["latest", "production"]


@pytest.mark.slow
def test_labels_are_offered_once_they_point_to_a_version(as_alice, home, workspace, elsewhere, monkeypatch):
    monkeypatch.setattr(api_keys_scopes, "LABEL_SOURCES", [list_label_names])
    for place, label in ((workspace, "canary"), (elsewhere, "secret-plan")):
        prompt = make_stage(place).prompt
        assert prompt.latest is not None
        move_label(prompt, label, prompt.latest, expected=None, by=BY)
    form = as_alice.get(f"{home}new/").context["form"]
    assert [name for name, _ in form.fields["labels"].choices] == ["canary", "latest", "production"]


# --- rotation and revocation ---------------------------------------------------------------------------


def test_after_a_rotation_both_keys_are_valid_for_the_chosen_hours(as_alice, home, workspace, key):
    assert 'value="Reception 2"' in page_text(as_alice.get(f"{home}{key.pk}/rotate/"))
    form = {"name": "Reception 2", "hours": "72", "expires_at": day(90)}
    answer = as_alice.post(f"{home}{key.pk}/rotate/", form)
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    new = keys_in(workspace).get(digest=key_digest(secret_in(answer)))
    key.refresh_from_db()
    assert new.name == "Reception 2"
    assert timedelta(hours=71) < key.expires_at - timezone.now() <= timedelta(hours=72)
    again = as_alice.post(f"{home}{key.pk}/rotate/", form)
    assert (again.status_code, list(again.context["form"].errors)) == (422, ["name"])
    assert keys_in(workspace).count() == 2


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"hours": "9999"}, "hours"), ({"hours": "x"}, "hours"), ({"expires_at": ""}, "expires_at")],
)
def test_a_rotation_with_wrong_input_changes_nothing(as_alice, home, key, wrong, field):
    form = {"name": "Next", "hours": "1", "expires_at": day(9)} | wrong
    answer = as_alice.post(f"{home}{key.pk}/rotate/", form)
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, [field])
    before = key.expires_at
    key.refresh_from_db()
    assert key.expires_at == before
    assert ApiKey.unscoped.count() == 1


def test_an_ended_key_or_anothers_admin_key_is_not_rotated(as_alice, home, workspace, bob, key):
    theirs, _ = create_key(workspace, "Bob's", {}, by=Actor.person(bob), kind=ADMIN)
    revoke_key(key, by=BY)
    form = {"name": "Next", "hours": "1", "expires_at": day(9)}
    for row, complaint in ((key, "is no longer valid"), (theirs, "so only they can rotate it")):
        answer = as_alice.post(f"{home}{row.pk}/rotate/", form)
        assert answer.status_code == 422
        assert complaint in page_text(answer)
    assert keys_in(workspace).count() == 2


def test_revoking_asks_for_confirmation(as_alice, home, key):
    page = page_text(as_alice.get(f"{home}{key.pk}/revoke/"))
    assert "Revoke" in page
    assert not ApiKey.unscoped.exclude(revoked_at=None).exists()
    assert as_alice.post(f"{home}{key.pk}/revoke/").status_code == 302
    key.refresh_from_db()
    assert key.revoked_at is not None
    assert "Revoked by alice@example.com" in page_text(as_alice.get(f"{home}{key.pk}/")).replace("<bdi>", "")


# --- access --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_keys_are_for_owners_and_admins(workspace, home, key):
    for role in ("admin", "editor", "reviewer", "viewer"):
        user = make_user(role.title())
        join(workspace, user, role)
        browser = signed_in(user)
        expected = 200 if role == Role.ADMIN else 403
        for page in ("", "new/", f"{key.pk}/", f"{key.pk}/rotate/", f"{key.pk}/revoke/"):
            assert browser.get(home + page).status_code == expected, (role, page)


def test_users_outside_the_workspace_get_404(as_mallory, home, key, elsewhere):
    assert as_mallory.get(home).status_code == 404
    for page in ("", "rotate/", "revoke/"):
        assert as_mallory.get(f"/w/{elsewhere.slug}/keys/{key.pk}/{page}").status_code == 404


@pytest.mark.parametrize("page", ["new/", "rotate/", "revoke/"])
def test_keys_are_changed_only_soon_after_signing_in(client, home, alice, key, page):
    alice.set_password(PASSWORD)
    alice.save()
    client.force_login(alice)
    address = home + (page if page == "new/" else f"{key.pk}/{page}")
    for answer in (client.get(address), client.post(address, form_data(hours="1"))):
        assert answer.status_code == 302
        assert "/reauthenticate/" in answer["Location"]
    key.refresh_from_db()
    assert key.revoked_at is None
    assert ApiKey.unscoped.count() == 1
