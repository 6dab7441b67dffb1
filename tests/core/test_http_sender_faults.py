"""Each fault in the guarded HTTP sender is detected by its tests."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from core.outgoing import http_sender
from core.outgoing.http_sender import Address, HttpSender, OutgoingPolicy, Target
from tests.core import test_http_sender as proofs

pytestmark = pytest.mark.planted
Plant = Callable[[pytest.MonkeyPatch], None]


def trust_is_global(patch: pytest.MonkeyPatch) -> None:
    """Python calls some addresses global that lead inside, such as NAT64 and multicast."""

    def is_public(address: Address) -> bool:
        return address.is_global

    patch.setattr(http_sender, "is_public_address", is_public)


def check_only_private_ipv4(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(http_sender, "is_public_address", lambda address: address.version == 6 or address.is_global)


def check_the_first_address(patch: pytest.MonkeyPatch) -> None:
    real = HttpSender._find_target

    def find(sender: HttpSender, url: str, deadline: float) -> Target:
        addresses = sender.resolve("", 0)
        first = HttpSender(sender.policy, sender.total_seconds, lambda host, port: addresses[:1])
        return real(first, url, deadline)

    patch.setattr(HttpSender, "_find_target", find)


def resolve_again(patch: pytest.MonkeyPatch) -> None:
    """The connection goes to what the name means by then: DNS rebinding."""
    real_find, real_connect = HttpSender._find_target, http_sender.connect_to
    senders: list[HttpSender] = []

    def find(sender: HttpSender, url: str, deadline: float) -> Target:
        senders.append(sender)
        return real_find(sender, url, deadline)

    def connect(target: Target, deadline: float) -> socket.socket:
        addresses = senders[-1].resolve(target.host, target.port)
        return real_connect(Target(target.parts, target.host, target.port, addresses), deadline)

    patch.setattr(HttpSender, "_find_target", find)
    patch.setattr(http_sender, "connect_to", connect)


def follow_redirects(patch: pytest.MonkeyPatch) -> None:
    real = HttpSender.post

    def post(sender: HttpSender, url: str, body: bytes, headers: Any) -> Any:
        response = real(sender, url, body, headers)
        location = {name.lower(): value for name, value in response.headers.items()}.get("location")
        return real(sender, location, body, headers) if location else response

    patch.setattr(HttpSender, "post", post)


def allow_http_in_production(patch: pytest.MonkeyPatch) -> None:
    real = http_sender.parse_url
    patch.setattr(
        http_sender, "parse_url", lambda url, policy: real(url, OutgoingPolicy(is_https_only=False))
    )


def name_the_address(patch: pytest.MonkeyPatch) -> None:
    real = HttpSender._find_target

    def find(sender: HttpSender, url: str, deadline: float) -> Target:
        try:
            return real(sender, url, deadline)
        except http_sender.ForbiddenUrl as error:
            raise http_sender.ForbiddenUrl(f"{error} {url}") from None

    patch.setattr(HttpSender, "_find_target", find)


TABLE = proofs.test_no_form_of_an_internal_address_gets_a_connection
FAULTS: dict[Plant, Callable[..., None]] = {
    trust_is_global: TABLE,
    check_only_private_ipv4: TABLE,
    name_the_address: TABLE,
    check_the_first_address: proofs.test_a_name_with_one_internal_address_is_refused,
    follow_redirects: proofs.test_redirects_are_not_followed,
    allow_http_in_production: proofs.test_production_needs_https_and_a_usual_port,
}


@pytest.mark.parametrize("plant", FAULTS)
def test_a_fault_in_the_sender_is_detected(monkeypatch, plant):
    plant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, http_sender.OutgoingError)):
        FAULTS[plant]()


def test_a_sender_that_resolves_again_is_detected(monkeypatch):
    resolve_again(monkeypatch)
    with pytest.raises((AssertionError, StopIteration, pytest.fail.Exception, http_sender.OutgoingError)):
        proofs.test_a_name_that_resolves_differently_the_second_time_is_resolved_once(monkeypatch)
