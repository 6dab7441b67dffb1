"""Promise R11: revoked means revoked, in every process and from the next request on."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from personas.actors import Actor
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.services import create_key, revoke_key
from personas.members.services import change_role, remove_member
from personas.models import ApiKey, Membership, User, Workspace
from personas.roles import Role
from prompts.builds.services import rebuild_agents
from tests.clients.live import LiveServer
from tests.clients.stub_server import ReceivedRequest, StubResponse, StubServer, run_stub_server
from tests.factories import join, make_agent, make_channel, make_soul, signed_in
from tests.personas.api.revocation_load import RequestSpec, send_all, with_key

pytestmark = pytest.mark.django_db(transaction=True)
MANY, SOME = 1_000, 200
FETCH, SOULS = "/api/v1/agents/pilot/prompt?channel=deck", "/api/v1/souls"


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
) -> None:
    """Check that all requests are accepted before the end of the key or session, and none after it."""
    before = send_all(processes, requests, 16 * len(requests))
    assert {(server, path) for server, path, _ in before.accepted()} == {
        (server, f"{request.method} {request.path}") for server in processes for request in requests
    }, before.counts
    assert before.statuses() <= {200, 201}
    end()
    after = send_all(processes, requests, count)
    assert after.total >= count
    assert not after.accepted()
    assert after.statuses() == {status}, after.counts


@pytest.mark.hard
@pytest.mark.promise("R11", "1,000 requests to 2 processes after the revocation, 0 accepted")
def test_a_revoked_key_is_rejected_by_every_process(processes, harbour, alice):
    key, secret = new_key(harbour, alice)
    requests = with_key(secret, FETCH, SOULS)
    check_rejected_everywhere(processes, requests, lambda: revoke_key(key, by=Actor.person(alice)), MANY)


@pytest.mark.hard
@pytest.mark.promise("R11")
def test_an_expired_key_is_rejected(processes, harbour, alice):
    key, secret = new_key(harbour, alice)

    def expire() -> None:
        ends_at = timezone.now() + timedelta(seconds=0.3)
        ApiKey.unscoped.filter(pk=key.pk).update(expires_at=ends_at)
        time.sleep(0.35)

    check_rejected_everywhere(processes, with_key(secret, FETCH, SOULS), expire, SOME)


@pytest.mark.hard
@pytest.mark.promise("R11")
def test_the_keys_of_a_removed_member_are_rejected(processes, harbour, alice, bob):
    member = Membership.objects.in_workspace(harbour).get(user=bob)
    _, secret = new_key(harbour, bob, ADMIN)
    requests = with_key(secret, FETCH, SOULS)
    check_rejected_everywhere(
        processes, requests, lambda: remove_member(member, by=Actor.person(alice)), SOME
    )


@pytest.mark.hard
@pytest.mark.promise("R11")
def test_an_admin_key_follows_the_current_role_of_its_creator(processes, harbour, alice, mallory):
    member = join(harbour, mallory, Role.EDITOR)
    _, secret = new_key(harbour, mallory, ADMIN)
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
    request = RequestSpec("/api/v1/memories", "POST", headers, json.dumps({"text": "Fresh."}).encode())
    lower = lambda: change_role(member, Role.VIEWER, by=Actor.person(alice))  # noqa: E731
    check_rejected_everywhere(processes, [request], lower, SOME, status=403)


@pytest.mark.hard
@pytest.mark.promise("R11", "the same for an expired key, a removed member, a lowered role, an ended session")
def test_an_ended_session_is_rejected(processes, harbour, alice):
    browser = signed_in(alice)
    cookie = f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"
    before = send_all(processes, [RequestSpec("/profile/", headers={"Cookie": cookie})], 16)
    assert before.statuses() == {200}
    browser.session.flush()
    after = send_all(processes, [RequestSpec("/profile/", headers={"Cookie": cookie})], SOME)
    assert after.total >= SOME
    assert after.statuses() == {302}


# --- planted faults ------------------------------------------------------------------------------------


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


@pytest.mark.promise("R11")
@pytest.mark.planted
def test_one_process_of_two_that_caches_keys_is_detected(pair):
    rows, requests = KeyTable(), with_key("a-key", SOULS)
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
    check_rejected_everywhere(servers, with_key("a-key", SOULS), rows.good.clear, SOME)
