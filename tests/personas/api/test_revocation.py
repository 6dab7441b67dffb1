"""Promise R11: revoked means revoked, in every process and from the next request on."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.test import Client
from django.utils import timezone

from personas import receivers
from personas.actors import Actor
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.services import create_key, revoke_key
from personas.members.services import change_role, remove_member
from personas.models import ApiKey, Membership, User, Workspace
from personas.roles import Role
from prompts.publishing.builds.services import rebuild_agents
from tests.clients.live import LiveServer
from tests.clients.stub_server import ReceivedRequest, StubResponse, StubServer, run_stub_server
from tests.factories import BY, PASSWORD, join, make_agent, make_channel, make_soul
from tests.personas.accounts.sign_in import OTHER_ADDRESS, give_password, give_totp, sign_in
from tests.personas.api.revocation_load import RequestSpec, send_all, with_key
from tests.pytest_servers import get_citus_cluster

pytestmark = pytest.mark.django_db(transaction=True)
MANY, SOME = 1_000, 200
NEW_PASSWORD = "another long secret"
FETCH, MEMORIES = "/api/v1/agents/pilot/channels/deck/prompt", "/api/v1/memories"


@pytest.fixture(scope="module")
def processes(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Two servers that share nothing but the database."""
    folder = tmp_path_factory.mktemp("web")
    servers = [LiveServer(folder / f"{number}.log") for number in (1, 2)]
    try:
        for server in servers:
            server.start()
        yield [server.url for server in servers]
    finally:
        for server in servers:
            server.kill()


@pytest.fixture
def harbour(workspace: Workspace) -> Workspace:
    """A workspace with a prompt."""
    soul, channel = make_soul(workspace), make_channel(workspace, "deck")
    agent = make_agent(workspace, "pilot", soul=soul, channels=[channel])
    rebuild_agents(workspace, [agent.pk])
    return workspace


def new_key(workspace: Workspace, by: User, kind: str = BOT) -> tuple[ApiKey, str]:
    return create_key(workspace, f"{kind} {time.monotonic_ns()}", {}, by=Actor.person(by), kind=kind)


def check_rejected_everywhere(
    processes: list[str],
    requests: list[RequestSpec],
    end: Callable[[], object],
    count: int,
    status: int = 401,
    *,
    record: Callable[[str, object], None] | None = None,
) -> None:
    """Check that all requests are accepted before the end of the key or session, and none after it."""
    before = send_all(processes, requests, 16 * len(requests))
    assert {(server, path) for server, path, _ in before.accepted()} == {
        (server, f"{request.method} {request.path}") for server in processes for request in requests
    }, before.counts
    assert before.statuses() <= {200, 201}
    end()
    after = send_all(processes, requests, count)
    record_requests(record, after.total, sum(after.accepted().values()))
    assert after.total >= count
    assert not after.accepted()
    assert after.statuses() == {status}, after.counts


def record_requests(record: Callable[[str, object], None] | None, total: int, accepted: int) -> None:
    """Record how many requests were sent after the end, and how many of them were accepted."""
    if record is not None:
        record("requests after the end", total)
        record("of them accepted", accepted)


@pytest.mark.hard
@pytest.mark.promise("R11", "a revoked key")
def test_a_revoked_key_is_rejected_by_every_process(processes, harbour, alice, record_property):
    key, secret = new_key(harbour, alice)
    requests = with_key(secret, FETCH, MEMORIES)
    end = lambda: revoke_key(key, by=Actor.person(alice))  # noqa: E731
    check_rejected_everywhere(processes, requests, end, MANY, record=record_property)


@pytest.mark.hard
@pytest.mark.promise("R11", "an expired key")
def test_an_expired_key_is_rejected(processes, harbour, alice, record_property):
    key, secret = new_key(harbour, alice)

    def expire() -> None:
        ends_at = timezone.now() + timedelta(seconds=0.3)
        ApiKey.unscoped.filter(pk=key.pk).update(expires_at=ends_at)
        time.sleep(0.35)

    requests = with_key(secret, FETCH, MEMORIES)
    check_rejected_everywhere(processes, requests, expire, SOME, record=record_property)


@pytest.mark.hard
@pytest.mark.promise("R11", "a removed member")
def test_the_keys_of_a_removed_member_are_rejected(processes, harbour, alice, bob, record_property):
    member = Membership.objects.in_workspace(harbour).get(user=bob)
    _, secret = new_key(harbour, bob, ADMIN)
    requests = with_key(secret, FETCH, MEMORIES)
    end = lambda: remove_member(member, by=Actor.person(alice))  # noqa: E731
    check_rejected_everywhere(processes, requests, end, SOME, record=record_property)


@pytest.mark.hard
@pytest.mark.promise("R11", "a lowered role")
def test_an_admin_key_follows_the_current_role_of_its_creator(
    processes, harbour, alice, mallory, record_property
):
    member = join(harbour, mallory, Role.EDITOR)
    _, secret = new_key(harbour, mallory, ADMIN)
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    request = RequestSpec("/api/v1/memories", "POST", headers, json.dumps({"text": "Fresh."}).encode())
    lower = lambda: change_role(member, Role.VIEWER, by=Actor.person(alice))  # noqa: E731
    check_rejected_everywhere(processes, [request], lower, SOME, status=403, record=record_property)


# --- sessions ------------------------------------------------------------------------------------------


def get_cookie(browser: Client) -> str:
    return f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"


def check_session_rejected(
    processes: list[str],
    browser: Client,
    end: Callable[[], object],
    *,
    record: Callable[[str, object], None] | None = None,
) -> None:
    """Check that pages accept the session of this browser before its end, and no page does after it."""
    request = RequestSpec("/profile/", headers={"Cookie": get_cookie(browser)})
    before = send_all(processes, [request], 16 * len(processes))
    assert before.statuses() == {200}, before.counts
    end()
    after = send_all(processes, [request], SOME)
    # A redirect to the sign-in page is a refusal.
    accepted = sum(number for (_, _, status), number in after.counts.items() if status != 302)
    record_requests(record, after.total, accepted)
    assert after.total >= SOME
    assert accepted == 0, after.counts


def change_password(browser: Client) -> None:
    fields = {"oldpassword": PASSWORD, "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    assert browser.post("/accounts/password/change/", fields).status_code == 302


def end_other_sessions(browser: Client) -> None:
    assert browser.post("/accounts/sessions/").status_code == 302


def remove_factor(browser: Client) -> None:
    browser.post("/accounts/reauthenticate/", {"password": PASSWORD})
    assert browser.post("/accounts/2fa/totp/deactivate/").status_code == 302
    assert not Authenticator.objects.exists()


SESSION_ENDS = {
    "password change": change_password,
    "ended from the list": end_other_sessions,
    "removed second factor": remove_factor,
}


@pytest.fixture
def two_browsers(alice: User) -> tuple[Client, Client]:
    """Two browsers in which Alice signed in with her password and her authenticator app."""
    secret = give_totp(give_password(alice))
    return sign_in(alice, secret=secret), sign_in(alice, secret=secret, address=OTHER_ADDRESS)


@pytest.mark.hard
@pytest.mark.promise("R11", "a session after signing out")
def test_a_session_that_was_signed_out_is_rejected(processes, alice, record_property):
    browser = sign_in(give_password(alice))
    cookie_holder = Client()
    cookie_holder.cookies.update(browser.cookies)
    end = lambda: browser.post("/accounts/logout/")  # noqa: E731
    check_session_rejected(processes, cookie_holder, end, record=record_property)


@pytest.mark.hard
@pytest.mark.promise("R11", "a session after a password change, a removed factor, the end from the list")
@pytest.mark.parametrize("cause", SESSION_ENDS)
def test_the_other_session_is_rejected_after(cause, processes, two_browsers, record_property):
    browser, other = two_browsers
    check_session_rejected(processes, other, lambda: SESSION_ENDS[cause](browser), record=record_property)


# --- planted faults in the product ---------------------------------------------------------------------


@pytest.fixture
def start_faulty(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Return a function that starts a server with a fault planted in the product, and returns its URL."""
    servers: list[LiveServer] = []

    def start(fault: str) -> str:
        servers.append(LiveServer(tmp_path / "faulty.log", fault=fault))
        servers[-1].start()
        return servers[-1].url

    yield start
    for server in servers:
        server.kill()


@pytest.mark.hard
@pytest.mark.promise("R11")
@pytest.mark.planted
@pytest.mark.parametrize(
    ("fault", "path"),
    [
        ("cached_keys", MEMORIES),
        pytest.param(
            "unchecked_fetches",
            FETCH,
            marks=pytest.mark.skipif(
                get_citus_cluster() is not None, reason="on Citus a function of the database checks the key"
            ),
        ),
    ],
)
def test_a_process_that_accepts_revoked_keys_is_detected(fault, path, processes, start_faulty, harbour):
    servers = [processes[0], start_faulty(fault)]
    key, secret = new_key(harbour, User.objects.get(name="Alice"))
    requests = with_key(secret, path)
    with pytest.raises(AssertionError):
        check_rejected_everywhere(servers, requests, lambda: revoke_key(key, by=BY), SOME)
    accepted = send_all(servers, requests, SOME).accepted()
    assert {server for server, _, _ in accepted} == {servers[1]}


@pytest.mark.hard
@pytest.mark.promise("R11")
@pytest.mark.planted
@pytest.mark.parametrize(
    ("fault", "cause"),
    [("cached_sessions", "ended from the list"), ("unverified_sessions", "password change")],
)
def test_a_process_that_accepts_ended_sessions_is_detected(
    fault, cause, processes, start_faulty, two_browsers
):
    faulty = start_faulty(fault)
    browser, other = two_browsers
    with pytest.raises(AssertionError):
        check_session_rejected([faulty], other, lambda: SESSION_ENDS[cause](browser))
    # Asked last: a sound process deletes a session whose password was changed.
    request = RequestSpec("/profile/", headers={"Cookie": get_cookie(other)})
    assert send_all(processes[:1], [request], 16).statuses() == {302}


@pytest.mark.hard
@pytest.mark.promise("R11")
@pytest.mark.planted
def test_sessions_that_outlive_a_removed_factor_are_detected(processes, two_browsers, monkeypatch):
    monkeypatch.setattr(receivers, "end_other_sessions", lambda request, user: 0)
    browser, other = two_browsers
    with pytest.raises(AssertionError):
        check_session_rejected(processes, other, lambda: remove_factor(browser))


# --- the load tool itself ------------------------------------------------------------------------------


class KeyTable:
    """The keys that the stub servers check, in place of the database."""

    def __init__(self) -> None:
        self.good = {"a-key"}

    def answer(self, request: ReceivedRequest) -> StubResponse:
        return StubResponse(200 if request.headers["authorization"][7:] in self.good else 401)


def caching_reply(rows: KeyTable) -> Callable[[ReceivedRequest], StubResponse]:
    """Return the reply function of a server that caches the result of each key."""
    replies: dict[str, StubResponse] = {}
    return lambda request: replies.setdefault(request.headers["authorization"], rows.answer(request))


@pytest.fixture
def pair() -> Iterator[tuple[StubServer, StubServer]]:
    with run_stub_server() as one, run_stub_server() as other:
        yield one, other


@pytest.mark.planted
def test_one_process_of_two_that_caches_keys_is_detected(pair):
    rows, requests = KeyTable(), with_key("a-key", MEMORIES)
    pair[0].reply, pair[1].reply = rows.answer, caching_reply(rows)
    servers = [server.url for server in pair]
    with pytest.raises(AssertionError):
        check_rejected_everywhere(servers, requests, rows.good.clear, SOME)
    accepted = send_all(servers, requests, SOME).accepted()
    assert {server for server, _, _ in accepted} == {pair[1].url}


@pytest.mark.planted
def test_two_processes_that_check_each_time_pass(pair):
    rows = KeyTable()
    pair[0].reply = pair[1].reply = rows.answer
    servers = [server.url for server in pair]
    check_rejected_everywhere(servers, with_key("a-key", MEMORIES), rows.good.clear, SOME)
