"""Access without and with a login: public pages, the login redirect, the admin site and sign-up."""

import pytest
from django.contrib.auth import get_user_model

OPEN = ["/accounts/login/", "/accounts/signup/", "/accounts/password/reset/", "/healthz"]
CLOSED = [
    "/accounts/email/",
    "/accounts/2fa/",
    "/accounts/sessions/",
    "/accounts/password/change/",
    "/operator/",
]

pytestmark = pytest.mark.django_db


def make_user(email, **fields):
    return get_user_model().objects.create_user(email=email, password="a long enough secret", **fields)


@pytest.mark.parametrize("path", OPEN)
def test_open_to_all(client, path):
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", CLOSED)
def test_strangers_are_sent_to_log_in(client, path):
    answer = client.get(path, follow=True)
    assert answer.redirect_chain[-1][0].startswith("/accounts/login/")


def test_the_back_office_does_not_exist_for_staff_without_full_rights(client):
    client.force_login(make_user("staff@example.com", is_staff=True))
    assert client.get("/operator/", follow=True).status_code == 404


def test_the_admins_own_log_in_form_is_never_shown(client):
    answer = client.post("/operator/login/", {"username": "root@example.com", "password": "x"})
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/")


@pytest.mark.slow
def test_the_sixth_failure_is_refused_even_with_the_right_password(client):
    make_user("alice@example.com")
    for _ in range(5):
        client.post("/accounts/login/", {"login": "alice@example.com", "password": "wrong"})
    answer = client.post(
        "/accounts/login/", {"login": "alice@example.com", "password": "a long enough secret"}
    )
    assert answer.status_code == 200
    assert "Too many" in answer.content.decode()


def test_sign_up_can_be_switched_off(client, settings):
    settings.DRAMATIS_SIGNUP = False
    data = {
        "email": "m@example.com",
        "password1": "a long enough secret",
        "password2": "a long enough secret",
    }
    client.post("/accounts/signup/", data)
    assert not get_user_model().objects.filter(email="m@example.com").exists()
    settings.DRAMATIS_SIGNUP = True
    client.post("/accounts/signup/", data)
    assert get_user_model().objects.filter(email="m@example.com").exists()
