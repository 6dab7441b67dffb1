"""R22: emails cannot be misused, whatever causes them.

Links have the host of PUBLIC_URL under any Host header, the messages per address and day are bounded, no name
adds a header, and the answers to visitors do not tell whether an address has an account.
"""

import re

import pytest
from django.core import mail
from django.core.cache import cache

from personas.accounts import account_adapter
from personas.limits import emails
from personas.models import DailyUsage, User, Workspace
from tests.factories import make_operator, make_user, make_workspace
from tests.personas.accounts.sign_in import browser_at, give_password, sign_in
from tests.promises.email_ways import ALLAUTH_TEMPLATES, OWN_CALLS, WAYS, Scene, find_unlisted_emails

pytestmark = [pytest.mark.django_db, pytest.mark.promise("R22"), pytest.mark.usefixtures("stopped_clock")]
PUBLIC_URL, EVIL = "https://prompts.example.com", "evil.example"
URL = re.compile(r"https?://\S+")
HOSTS = {
    "another port": {"HTTP_HOST": "prompts.example.com:9999"},
    "another host": {"HTTP_HOST": EVIL},
    "a forwarded host": {"HTTP_HOST": "prompts.example.com", "HTTP_X_FORWARDED_HOST": EVIL},
    "a forwarded address": {"HTTP_HOST": "prompts.example.com", "HTTP_FORWARDED": f"host={EVIL}"},
}
INJECTION = f"Quay\r\nBcc: all@{EVIL}\r\n\r\nText"
LIMITS = {
    "DRAMATIS_VISITOR_EMAILS_PER_ADDRESS": 3,
    "DRAMATIS_EMAILS_PER_ADDRESS": 4,
    "DRAMATIS_INVITATIONS_PER_ADDRESS": 2,
}
TRIES = 6


@pytest.fixture
def scene(settings, key_for, django_capture_on_commit_callbacks):
    settings.PUBLIC_URL, settings.ALLOWED_HOSTS = PUBLIC_URL, ["*"]
    for name, limit in LIMITS.items():
        setattr(settings, name, limit)
    alice = make_user("Alice")
    workspace = make_workspace("Harbour", owner=alice)
    scene = Scene(alice, workspace, key_for(workspace, alice), make_operator())

    def run(way, times=1):
        for _ in range(times):
            with django_capture_on_commit_callbacks(execute=True):
                WAYS[way](scene)
        return [message for message in mail.outbox if message.to == [scene.address]]

    scene.run = run
    return scene


def list_foreign_links(messages):
    """Return the links that do not lead to this installation, and texts that name another host."""
    links = [link for message in messages for link in URL.findall(message.body)]
    foreign = [link for link in links if not link.startswith(f"{PUBLIC_URL}/") and link != PUBLIC_URL]
    return foreign + [one.body for one in messages if EVIL in one.body or EVIL in one.subject]


# --- every way is known --------------------------------------------------------------------------------


def test_every_call_that_sends_an_email_has_a_row():
    assert find_unlisted_emails() == []
    rows = {*OWN_CALLS.values(), *ALLAUTH_TEMPLATES.values()}
    assert {row for row in rows if row in WAYS} | {"sign-in with an unconfirmed address"} == set(WAYS)


@pytest.mark.planted
def test_a_new_call_without_a_row_is_found(tmp_path):
    for app in ("core", "personas", "skills", "prompts", "project"):
        (tmp_path / app).mkdir()
    (tmp_path / "prompts" / "report.py").write_text(
        "from django.core.mail import send_mail\n\n\ndef send_report():\n    send_mail('', '', None, [])\n"
    )
    assert "prompts/report.py send_report" in find_unlisted_emails(tmp_path)


# --- links ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_links_have_the_public_host_under_any_host_header(way, scene):
    for number, headers in enumerate(HOSTS.values()):
        scene.headers, scene.address = headers, f"victor{number}@example.com"
        messages = scene.run(way)
        assert messages, headers
        assert list_foreign_links(messages) == []
        assert "localhost" not in messages[0].body


@pytest.mark.planted
@pytest.mark.parametrize("way", ["password reset", "sign-up", "another address of an account"])
def test_a_link_with_the_host_of_the_request_is_found(way, scene, monkeypatch):
    monkeypatch.setattr(account_adapter, "build_public_url", lambda url: url)
    scene.headers = HOSTS["another host"]
    assert list_foreign_links(scene.run(way))


# --- limits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_emails_to_one_address_are_bounded_each_way(way, scene):
    messages = scene.run(way, TRIES)
    assert 0 < len(messages) <= max(LIMITS.values())


def test_all_ways_together_are_bounded(scene, record_property):
    """Other spellings of the address count too, and so do those with a tag."""
    for way in WAYS:
        for address in ("victor@example.com", "victor+1@example.com"):
            scene.address = address
            scene.run(way, 2)
    messages = [one for one in mail.outbox if one.to[0].startswith("victor")]
    # Visitors, the account, notifications and invitations have limits of their own.
    bound = 3 + 4 + 4 + 2
    assert 0 < len(messages) <= bound
    record_property("measured", f"{len(WAYS)} ways, {len(messages)} of at most {bound} emails to an address")


@pytest.mark.planted
@pytest.mark.parametrize(
    "way", ["password reset", "invitation by page", "invitation by key", "notifications"]
)
def test_a_missing_limit_is_found(way, scene, monkeypatch):
    monkeypatch.setattr(emails, "use_daily_limit", lambda *_: True)
    assert len(scene.run(way, TRIES)) > max(LIMITS.values())


def test_an_invitation_beyond_the_limit_is_refused_with_the_reason(scene):
    scene.run("invitation by key", 2)
    [row] = scene.api.get("invitations").json()["items"]
    answer = scene.api.post(f"invitations/{row['id']}:resend")
    assert (answer.status_code, answer.json()["code"]) == (429, "daily_limit_reached")
    assert "one address is 2" in answer.json()["detail"]
    assert "DRAMATIS_INVITATIONS_PER_ADDRESS" in answer.json()["detail"]
    assert 0 < int(answer["Retry-After"]) <= 86_400
    page = scene.sign_in(scene.alice).post(f"/w/harbour/members/invitations/{row['id']}/resend/")
    assert page.status_code == 429
    # Both count the seconds to the same midnight; the second request is a moment later.
    assert 0 <= int(answer["Retry-After"]) - int(page["Retry-After"]) <= 60
    assert "The daily limit of invitations for one address is 2" in page.content.decode()
    # The old link still works: nothing was withdrawn.
    assert [one["id"] for one in scene.api.get("invitations").json()["items"]] == [row["id"]]


def test_another_workspace_does_not_reach_the_address_either(scene, key_for):
    scene.run("invitation by key", 2)
    mallory = make_user("Mallory")
    other = key_for(make_workspace("Elsewhere", owner=mallory), mallory)
    body = {"email": "Victor+more@Example.com", "role": "viewer"}
    assert other.post("invitations", body).status_code == 429
    assert other.post("invitations", body | {"email": "dora@example.com"}).status_code == 201


@pytest.mark.parametrize("owner", ["WORKSPACE", "PERSON"])
def test_invitations_of_a_workspace_and_of_a_person_are_bounded(owner, scene, key_for, settings):
    setattr(settings, f"DRAMATIS_INVITATIONS_PER_{owner}", 2)
    keys = [scene.api, key_for(make_workspace("Quay", owner=scene.alice), scene.alice)]
    statuses = [
        key.post("invitations", {"email": f"guest{number}{index}@example.com", "role": "viewer"}).status_code
        for index, key in enumerate(keys)
        for number in range(3)
    ]
    last = [201, 201, 429] if owner == "WORKSPACE" else [429, 429, 429]
    assert statuses == [201, 201, 429, *last]


# --- nobody is locked out, and nothing is revealed ------------------------------------------------------


def test_a_flood_of_resets_stops_neither_a_known_device_nor_security_notices(scene):
    victor = give_password(scene.victor)
    browser = sign_in(victor)
    browser.post("/accounts/logout/")
    assert len(scene.run("password reset", TRIES)) == 3
    cache.clear()
    browser.post("/accounts/password/reset/", {"email": victor.email})
    assert len(mail.outbox) == 4
    assert len(scene.run("notice account/email/password_changed")) == 5


def test_the_page_is_the_same_for_known_and_unknown_addresses_beyond_the_limit(scene):
    answers = {}
    for name, way in (("known", "password reset"), ("unknown", "password reset of an unknown address")):
        scene.address = f"{name}@example.com"
        assert len(scene.run(way, TRIES)) == 3
        cache.clear()
        answer = browser_at().post("/accounts/password/reset/", {"email": scene.address}, follow=True)
        answers[name] = (answer.status_code, answer.redirect_chain, answer.content.decode().count("<p"))
    assert answers["known"] == answers["unknown"]


def test_no_address_is_stored_in_clear(scene):
    scene.run("password reset")
    scene.run("invitation by key")
    assert DailyUsage.objects.exists()
    assert not [row for row in DailyUsage.objects.all() if "victor" in row.subject or "@" in row.subject]


# --- headers -------------------------------------------------------------------------------------------


def list_headers(message):
    return {name.lower() for name in message.message()}


@pytest.mark.parametrize("way", ["invitation by page", "invitation by key", "notifications"])
def test_names_with_line_breaks_add_no_header(way, scene):
    """The forms refuse such names; this writes them past the forms."""
    Workspace.objects.filter(pk=scene.workspace.pk).update(name=INJECTION)
    User.objects.filter(pk=scene.alice.pk).update(name=INJECTION)
    [message] = scene.run(way)
    assert "bcc" not in list_headers(message)
    assert message.recipients() == [scene.address]


@pytest.mark.planted
def test_a_subject_with_line_breaks_is_found(scene, monkeypatch):
    monkeypatch.setattr(emails, "build_subject_line", lambda text: text)
    Workspace.objects.filter(pk=scene.workspace.pk).update(name=INJECTION)
    with pytest.raises(ValueError, match="newlines"):
        scene.run("notifications")


def test_names_with_line_breaks_are_refused(scene):
    answer = scene.api.post("workspaces", {"name": INJECTION, "slug": "quay"})
    assert answer.status_code == 422
    scene.sign_in(scene.alice).post("/profile/", {"name": INJECTION, "timezone": "UTC"})
    assert User.objects.get(pk=scene.alice.pk).name == "Alice"


def test_account_emails_are_written_by_us(scene):
    [message] = scene.run("sign-up")
    assert message.subject == "Confirm your email address for Dramatis"
    assert "Open this link to confirm" in message.body
    assert message.body.rstrip().endswith(f"Dramatis, {PUBLIC_URL}")
    for words in ("Hello from", "Thank you for using"):
        assert words not in message.body
