"""The sender of outgoing requests: which URLs it refuses, and what it makes of slow and strange servers."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from ipaddress import ip_address

import pytest

from core.outgoing.http_sender import (
    MAX_RESPONSE_BYTES,
    ForbiddenUrl,
    HttpSender,
    OutgoingError,
    OutgoingPolicy,
    is_public_address,
)

DEVELOPMENT = OutgoingPolicy(is_https_only=False)
PRODUCTION = OutgoingPolicy(is_https_only=True)
LOCAL = OutgoingPolicy(is_https_only=False, allowed=("127.0.0.0/8",))

# Hosts that lead to this machine or to a network that is not public. The port of the canary is appended.
INTERNAL_HOSTS = re.findall(
    r"\S+",
    """
    127.0.0.1 127.0.0.2 127.1 127.0.1 127.255.255.254 0 0.0.0.0 0.0.0.1 2130706433 017700000001
    0177.0.0.1 0x7f000001 0x7f.1 0x7f.0.0.1 127.0.0.1. localhost localhost. LOCALHOST ip6-localhost
    localhost.localdomain [::1] [::] [0:0:0:0:0:0:0:1] [::127.0.0.1] [::ffff:127.0.0.1] [::ffff:7f00:1]
    [::ffff:0:127.0.0.1] [::FFFF:10.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b::7f00:1]
    [64:ff9b::169.254.169.254] [64:ff9b:1::7f00:1] [2002:7f00:1::] [2001:0:7f00:1::] [fe80::1] [fec0::1]
    [fc00::1] [fd00:ec2::254] [ff02::1] [2001:db8::1] [3fff::1] [100::1] 10.0.0.1 10.255.255.255
    172.16.0.1 172.31.255.255 192.168.0.1 169.254.169.254 169.254.0.1 100.64.0.1 100.100.100.200
    192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1
    239.255.255.255 240.0.0.1 255.255.255.255
    """,
)
# Forms that parsers read differently: all must be refused before anything is resolved.
STRANGE_URLS = [
    "http://user:secret@127.0.0.1:{port}/",
    "http://example.com@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@example.com/",
    "http://example.com#@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}/#part",
    "http:/127.0.0.1:{port}/",
    "http:127.0.0.1:{port}",
    "//127.0.0.1:{port}/",
    "http://[::1%25lo]:{port}/",
    "http://[fe80::1%25lo]:{port}/",
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://127。0。0。1:{port}/",
    "http://127.0.0.1%00.example.com:{port}/",
    "http://127.0.0.1 .example.com:{port}/",
    "http://127.0.0.1\t:{port}/",
    "http://127.0.0.1:{port}/\r\nX-Injected: 1",
    "ftp://127.0.0.1:{port}/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/_x",
    "unix:///tmp/socket",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1:-1/",
    "http://:{port}/",
    "http://",
    "",
    "http://{port}.example.com/" + "a" * 600,
]
Reply = Callable[[socket.socket], None]


class Receiver:
    """A server on all local addresses that counts its connections."""

    def __init__(self, reply: Reply) -> None:
        self.reply, self.requests, self.count = reply, list[bytes](), 0
        self.listeners = [socket.create_server(("0.0.0.0", 0))]  # noqa: S104  # a canary must be found anywhere
        self.port = self.listeners[0].getsockname()[1]
        if socket.has_ipv6:
            with suppress(OSError):
                self.listeners.append(socket.create_server(("::", self.port), family=socket.AF_INET6))
        for listener in self.listeners:
            threading.Thread(target=self.serve, args=(listener,), daemon=True).start()

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                self.requests.append(read_request(connection))
                self.reply(connection)
            except OSError:
                pass


def read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65_536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
    )
    while len(body) < length:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


@contextmanager
def receiver(reply: Reply | bytes = b"HTTP/1.1 204 No Content\r\n\r\n") -> Iterator[Receiver]:
    server = Receiver((lambda connection: connection.sendall(reply)) if isinstance(reply, bytes) else reply)
    yield server
    for listener in server.listeners:
        listener.close()


def url_of(server: Receiver, path: str = "/hook") -> str:
    return f"http://127.0.0.1:{server.port}{path}"


def test_no_form_of_an_internal_address_gets_a_connection():
    assert len(INTERNAL_HOSTS) + len(STRANGE_URLS) >= 80
    urls = [f"http://{host}:{{port}}/" for host in INTERNAL_HOSTS] + STRANGE_URLS
    with receiver() as canary:
        for url in urls:
            with pytest.raises(ForbiddenUrl) as error:
                HttpSender(DEVELOPMENT).post(url.replace("{port}", str(canary.port)), b"{}", {})
            for secret in ("127.", "10.", "169.", "::1", "internal"):
                assert secret not in str(error.value)
        time.sleep(0.2)
        assert canary.count == 0
        # The canary works: with the operator's permission it is reached.
        assert HttpSender(LOCAL).post(url_of(canary), b"{}", {}).status == 204
        assert canary.count == 1


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"]
)
def test_public_addresses_are_public(address):
    assert is_public_address(ip_address(address))


def test_a_name_with_one_internal_address_is_refused():
    with receiver() as canary:
        sender = HttpSender(DEVELOPMENT, resolve=lambda host, port: ["93.184.216.34", "127.0.0.1"])
        with pytest.raises(ForbiddenUrl):
            sender.post(f"http://two.example.com:{canary.port}/", b"{}", {})
        assert canary.count == 0


def test_a_name_that_resolves_differently_the_second_time_is_resolved_once(monkeypatch):
    answers, connected = iter([["93.184.216.34"], ["127.0.0.1"]]), []

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        connected.append(address[0])
        raise ConnectionRefusedError

    monkeypatch.setattr("core.outgoing.http_sender.socket.create_connection", connect)
    sender = HttpSender(DEVELOPMENT, resolve=lambda host, port: next(answers))
    with pytest.raises(OutgoingError, match=r"^The connection failed\.$"):
        sender.post("http://rebind.example.com/", b"{}", {})
    assert connected == ["93.184.216.34"]
    # At the next request the name leads inside, and is refused.
    with pytest.raises(ForbiddenUrl):
        sender.post("http://rebind.example.com/", b"{}", {})
    assert connected == ["93.184.216.34"]


def resolve_to(addresses: list[str], host: str, port: int) -> list[str]:
    return addresses


def test_unknown_and_internal_hosts_have_the_same_error():
    errors = set()
    known: list[list[str]] = [[], ["10.0.0.1"], ["::1"]]
    for addresses in known:
        with pytest.raises(ForbiddenUrl) as error:
            HttpSender(DEVELOPMENT, resolve=partial(resolve_to, addresses)).find_target("https://x.example/")
        errors.add(str(error.value))
    assert len(errors) == 1


def resolve_slowly(host: str, port: int) -> list[str]:
    time.sleep(20)
    return []


def test_a_resolver_that_hangs_is_not_waited_for():
    sender = HttpSender(DEVELOPMENT, total_seconds=0.3, resolve=resolve_slowly)
    began = time.monotonic()
    with pytest.raises(ForbiddenUrl):
        sender.find_target("https://slow.example/")
    assert time.monotonic() - began < 15


NUMBERS = ("999.999.999.999", "1.2.3.4.5", "256.256.256.256", "4294967296", "0x", "a.0xg.7")


def test_a_host_that_is_a_number_is_never_resolved_by_a_name_server():
    """The resolver of the system has no time limit, and would ask for a name such as 999.999.999.999."""
    sender = HttpSender(DEVELOPMENT, total_seconds=60, resolve=resolve_slowly)
    began = time.monotonic()
    for host in NUMBERS:
        for check in (sender.check_url, sender.find_target):
            with pytest.raises(ForbiddenUrl):
                check(f"https://{host}/")
    assert sender.find_target("https://93.184.216.34/").addresses == ["93.184.216.34"]
    assert time.monotonic() - began < 10


def test_a_url_is_checked_without_a_name_server():
    def resolve(host: str, port: int) -> list[str]:
        raise AssertionError(host)

    sender = HttpSender(DEVELOPMENT, resolve=resolve)
    for url in ("https://hooks.example.com/", "https://93.184.216.34/", "https://[2606:4700::1111]/"):
        sender.check_url(url)
    for host in [*INTERNAL_HOSTS, "valkey", "valkey.", "a.localhost", "db.internal", "x.local", "y.invalid"]:
        with pytest.raises(ForbiddenUrl):
            sender.check_url(f"https://{host}/")
    # The operator's networks may contain any name.
    HttpSender(LOCAL, resolve=resolve).check_url("https://db.internal/")


def test_production_needs_https_and_a_usual_port():
    sender = HttpSender(PRODUCTION, resolve=lambda host, port: ["93.184.216.34"])
    for url in (
        "http://example.com/",
        "http://example.com:443/",
        "https://example.com:22/",
        "https://example.com:80/",
    ):
        with pytest.raises(ForbiddenUrl):
            sender.find_target(url)
    for url in ("https://example.com/", "https://example.com:8443/hook?a=1"):
        assert sender.find_target(url).addresses == ["93.184.216.34"]


def test_the_operator_can_allow_a_host_or_a_network():
    for allowed in ("hooks.internal", "10.1.0.0/16"):
        sender = HttpSender(
            OutgoingPolicy(is_https_only=True, allowed=(allowed,)), resolve=lambda host, port: ["10.1.2.3"]
        )
        assert sender.find_target("https://hooks.internal/").addresses == ["10.1.2.3"]
    with pytest.raises(ForbiddenUrl):
        HttpSender(
            OutgoingPolicy(is_https_only=True, allowed=("10.1.0.0/16",)),
            resolve=lambda host, port: ["10.2.2.3"],
        ).find_target("https://hooks.internal/")


# An entry of the operator, and the ports of https://hooks.internal (10.1.2.3, fd00::7) that it opens.
OPENED_PORTS = {
    "hooks.internal": {443, 8443},
    "HOOKS.internal:9000": {9000},
    "hooks.internal:443": {443},
    "10.1.0.0/16": {443, 8443},
    "10.1.0.0/16:9000": {9000},
    "10.1.2.3": {443, 8443},
    "10.1.2.3:9000": {9000},
    "fd00::/8": {443, 8443},
    "[fd00::/8]:9000": {9000},
    "[fd00::7]:9000": {9000},
    "other.internal:9000": set(),
}


@pytest.mark.parametrize("entry", OPENED_PORTS)
def test_an_allowed_host_opens_its_own_port_or_the_usual_ones(entry):
    policy = OutgoingPolicy(is_https_only=True, allowed=(entry,))
    address = "fd00::7" if "fd00" in entry else "10.1.2.3"
    sender = HttpSender(policy, resolve=partial(resolve_to, [address]))
    opened = set()
    for port in (22, 80, 443, 5432, 6379, 8443, 9000):
        with suppress(ForbiddenUrl):
            sender.find_target(f"https://hooks.internal:{port}/")
            opened.add(port)
    assert opened == OPENED_PORTS[entry]


def test_an_allowed_port_of_a_network_opens_no_port_of_public_hosts():
    policy = OutgoingPolicy(is_https_only=True, allowed=("10.0.0.0/8:9000",))
    sender = HttpSender(policy, resolve=lambda host, port: ["93.184.216.34"])
    assert sender.find_target("https://example.com/").port == 443
    with pytest.raises(ForbiddenUrl):
        sender.find_target("https://example.com:9000/")


def test_a_request_has_the_body_the_headers_and_the_host():
    with receiver(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Name: a\r\n\r\nok") as server:
        response = HttpSender(LOCAL).post(url_of(server, "/hook?a=1"), b'{"a": 1}', {"X-Id": "7"})
    assert (response.status, response.body, response.headers["x-name"]) == (200, b"ok", "a")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hook?a=1 HTTP/1.1\r\n")
    assert f"Host: 127.0.0.1:{server.port}".encode() in head
    assert b"X-Id: 7" in head
    assert body == b'{"a": 1}'


def test_redirects_are_not_followed():
    with receiver() as canary:
        reply = f"HTTP/1.1 302 Found\r\nLocation: {url_of(canary)}\r\nContent-Length: 0\r\n\r\n".encode()
        with receiver(reply) as server:
            assert HttpSender(LOCAL).post(url_of(server), b"{}", {}).status == 302
        assert canary.count == 0


def test_a_proxy_of_the_environment_is_not_used(monkeypatch):
    with receiver() as proxy, receiver() as server:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, url_of(proxy, ""))
        assert HttpSender(LOCAL).post(url_of(server), b"{}", {}).status == 204
        assert (proxy.count, server.count) == (0, 1)


def hang(connection: socket.socket) -> None:
    time.sleep(20)


def drip(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in range(200):
        connection.sendall(f"X-{number}: 1\r\n".encode())
        time.sleep(0.1)


def continue_for_ever(connection: socket.socket) -> None:
    for _ in range(200):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.1)


@pytest.mark.parametrize("reply", [hang, drip, continue_for_ever])
def test_the_whole_request_has_one_time_limit(reply):
    with receiver(reply) as server:
        began = time.monotonic()
        with pytest.raises(OutgoingError, match=r"within 0\.6 seconds"):
            HttpSender(LOCAL, total_seconds=0.6).post(url_of(server), b"{}", {})
        assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    "reply", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"a" * 70_000]
)
def test_what_is_no_response_is_an_error(reply):
    with receiver(reply) as server, pytest.raises(OutgoingError):
        HttpSender(LOCAL, total_seconds=30).post(url_of(server), b"{}", {})


def test_only_the_beginning_of_a_long_response_is_read():
    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(10_000):
            connection.sendall(b"x" * 65_536)

    with receiver(flood) as server:
        response = HttpSender(LOCAL, total_seconds=30).post(url_of(server), b"{}", {})
    assert (response.status, len(response.body)) == (200, MAX_RESPONSE_BYTES)


def test_a_status_counts_even_if_the_body_does_not_come():
    def stall(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        time.sleep(20)

    with receiver(stall) as server:
        assert HttpSender(LOCAL, total_seconds=2).post(url_of(server), b"{}", {}).status == 200


def test_a_header_with_a_line_break_is_not_sent():
    with receiver() as server, pytest.raises(ValueError, match="line break"):
        HttpSender(LOCAL).post(url_of(server), b"{}", {"X-Id": "7\r\nX-Other: 1"})


def test_a_server_without_tls_is_an_error_that_says_so():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/"

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(10)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(OutgoingError, match="TLS"):
            HttpSender(LOCAL, total_seconds=30).post(url, b"{}", {})
