"""Send HTTP requests to addresses that users enter, without access to internal networks (SSRF).

The host is resolved once, every address of it is checked, and the connection goes to a checked address, so a
name that resolves differently the second time (DNS rebinding) gains nothing. Redirects are not followed, no
proxy of the environment is used, the whole request has one time limit, and only the beginning of the response
is read. Nothing else in the product opens connections to such addresses.
"""

import io
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from http.client import HTTPException, HTTPResponse
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from threading import Thread
from typing import Any, Self
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

Address = IPv4Address | IPv6Address
# Returns the addresses of a host. Replaced in tests of DNS rebinding.
Resolver = Callable[[str, int], Sequence[str]]

SECURE_PORTS = (443, 8443)
MAX_URL_LENGTH = 500
TOTAL_SECONDS = 15.0
CONNECT_SECONDS = 5.0
MAX_RESPONSE_BYTES = 16 * 1024
# Visible ASCII characters without those that parsers of URLs disagree about.
URL_PATTERN = re.compile(r"[!#-;=?-\[\]_a-z~]+")
# Needs no name server.
IPV4_PATTERN = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
HOST_PATTERN = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\.?|[0-9a-f:.]+")
# This network, private, shared (CGNAT), loopback, link-local, protocol assignments, documentation, 6to4
# relays, benchmarks, multicast, reserved and broadcast.
INTERNAL_IPV4 = [
    ip_network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
]
# Only global unicast addresses of IPv6 are public. So loopback, mapped and compatible IPv4 addresses, NAT64,
# unique local, link-local, site-local and multicast addresses are not; nor are the exceptions: protocol
# assignments with Teredo, documentation and 6to4.
PUBLIC_IPV6 = ip_network("2000::/3")
INTERNAL_IPV6 = [ip_network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]


class OutgoingError(Exception):
    """A request could not be sent, or got no response. The text is for users and names no address."""


class ForbiddenUrl(OutgoingError):
    """The URL must not be requested. The text is the same for internal hosts and for unknown ones."""


@dataclass(frozen=True)
class OutgoingPolicy:
    """Which URLs may be requested. `allowed` are hosts and networks that the operator allows."""

    is_https_only: bool
    allowed: Sequence[str] = ()

    @classmethod
    def from_settings(cls) -> Self:
        return cls(settings.PRODUCTION, tuple(settings.DRAMATIS_OUTGOING_ALLOWED))

    def is_allowed_host(self, host: str) -> bool:
        return host.rstrip(".") in self.allowed

    def is_allowed_address(self, address: Address) -> bool:
        networks = [ip_network(text) for text in self.allowed if is_network(text)]
        return is_public_address(address) or any(address in network for network in networks)


@dataclass(frozen=True)
class SentResponse:
    """Status, headers and the beginning of the body of a response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Target:
    """A URL whose host was resolved, with the addresses that were checked."""

    parts: SplitResult
    host: str
    port: int
    addresses: Sequence[str]

    @property
    def path(self) -> str:
        query = f"?{self.parts.query}" if self.parts.query else ""
        return f"{self.parts.path or '/'}{query}"

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        is_default = self.port == (443 if self.parts.scheme == "https" else 80)
        return host if is_default else f"{host}:{self.port}"


@dataclass(frozen=True)
class HttpSender:
    """Sends requests under a policy."""

    policy: OutgoingPolicy
    total_seconds: float = TOTAL_SECONDS
    resolve: Resolver = field(default_factory=lambda: resolve_host)

    def check_url(self, url: str) -> Target:
        """Return the target of a URL. Raise ForbiddenUrl if it must not be requested."""
        return self._find_target(url, time.monotonic() + self.total_seconds)

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> SentResponse:
        """Send a POST request and return the response, whatever its status is.

        Raise OutgoingError if there is none.
        """
        deadline = time.monotonic() + self.total_seconds
        target = self._find_target(url, deadline)
        try:
            with connect_to(target, deadline) as connection:
                connection.settimeout(get_rest(deadline))
                connection.sendall(build_request(target, body, headers))
                return read_response(connection, deadline)
        except TimeoutError:
            seconds = f"{self.total_seconds:g}"
            raise OutgoingError(f"No complete response within {seconds} seconds.") from None
        except ssl.SSLError:
            raise OutgoingError("The TLS connection failed. Check the server's certificate.") from None
        except (OSError, HTTPException):
            raise OutgoingError("The connection failed.") from None

    def _find_target(self, url: str, deadline: float) -> Target:
        parts, host, port = parse_url(url, self.policy)
        addresses = resolve_in_time(self.resolve, host, port, min(get_rest(deadline), CONNECT_SECONDS))
        is_allowed = self.policy.is_allowed_host(host)
        if not addresses or not (is_allowed or all(map(self._is_allowed, addresses))):
            raise ForbiddenUrl("This URL cannot be used: its host has no public address.")
        return Target(parts, host, port, addresses)

    def _is_allowed(self, text: str) -> bool:
        return self.policy.is_allowed_address(ip_address(text))


def parse_url(url: str, policy: OutgoingPolicy) -> tuple[SplitResult, str, int]:
    """Return the parts of a URL, its host and its port. Raise ForbiddenUrl if its form is not allowed."""
    schemes = ("https",) if policy.is_https_only else ("https", "http")
    if len(url) > MAX_URL_LENGTH:
        raise ForbiddenUrl(f"A URL can have at most {MAX_URL_LENGTH} characters.")
    if not URL_PATTERN.fullmatch(url.lower()):
        raise ForbiddenUrl("The URL contains characters that are not allowed.")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise ForbiddenUrl("This is not a valid URL.") from None
    if parts.scheme not in schemes:
        raise ForbiddenUrl(f"The URL must start with {schemes[0]}://.")
    if not HOST_PATTERN.fullmatch(host):
        raise ForbiddenUrl("This is not a valid URL.")
    if "@" in parts.netloc or parts.fragment:
        raise ForbiddenUrl("The URL must not contain a user name, a password or a fragment.")
    port = (443 if parts.scheme == "https" else 80) if port is None else port
    if policy.is_https_only and port not in SECURE_PORTS and not policy.is_allowed_host(host):
        raise ForbiddenUrl("The port must be 443 or 8443.")
    return parts, host, port


def resolve_host(host: str, port: int) -> list[str]:
    """Return all addresses of a host, or of a number such as 127.1 or 0x7f000001."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def resolve_in_time(resolve: Resolver, host: str, port: int, seconds: float) -> Sequence[str]:
    """Resolve a host in a thread of its own: the resolver of the system has no time limit."""
    if IPV4_PATTERN.fullmatch(host):
        return resolve(host, port)
    results: list[Sequence[str]] = []
    thread = Thread(target=lambda: results.append(resolve(host, port)), daemon=True)
    thread.start()
    thread.join(seconds)
    return results[0] if results else []


def is_public_address(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in INTERNAL_IPV4)
    return (
        address.scope_id is None
        and address in PUBLIC_IPV6
        and not any(address in network for network in INTERNAL_IPV6)
    )


def is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return True


def get_rest(deadline: float) -> float:
    """Return the seconds until the deadline. Raise TimeoutError after it."""
    rest = deadline - time.monotonic()
    if rest <= 0:
        raise TimeoutError
    return rest


def connect_to(target: Target, deadline: float) -> socket.socket:
    """Connect to one of the checked addresses. The certificate is checked against the name of the host."""
    error: OSError = OSError("no address")
    for address in target.addresses[:2]:
        try:
            plain = socket.create_connection((address, target.port), min(get_rest(deadline), CONNECT_SECONDS))
        except OSError as failure:
            error = failure
            continue
        if target.parts.scheme == "http":
            return plain
        plain.settimeout(min(get_rest(deadline), CONNECT_SECONDS))
        try:
            return get_tls_context().wrap_socket(plain, server_hostname=target.host.rstrip("."))
        except BaseException:
            plain.close()
            raise
    raise error


@cache
def get_tls_context() -> ssl.SSLContext:
    return ssl.create_default_context()


def build_request(target: Target, body: bytes, headers: Mapping[str, str]) -> bytes:
    fields = {
        "Host": target.host_header,
        "Content-Length": str(len(body)),
        "Connection": "close",
        "Accept-Encoding": "identity",
        **headers,
    }
    if any(re.search(r"[\r\n]", f"{name}{value}") for name, value in fields.items()):
        raise ValueError("A header contains a line break.")
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {target.path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body


class DeadlineReader(io.RawIOBase):
    """Reads from a socket until a deadline. The timeout of a socket begins again with each byte."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self.connection, self.deadline = connection, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.connection.settimeout(get_rest(self.deadline))
        return self.connection.recv_into(buffer)


@dataclass(frozen=True)
class DeadlineSocket:
    """What HTTPResponse needs of a socket: a file to read from."""

    connection: socket.socket
    deadline: float

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(DeadlineReader(self.connection, self.deadline))


def read_response(connection: socket.socket, deadline: float) -> SentResponse:
    """Read status and headers, and the body up to MAX_RESPONSE_BYTES."""
    response = HTTPResponse(DeadlineSocket(connection, deadline), method="POST")  # type: ignore[arg-type]
    try:
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        try:
            body = response.read(MAX_RESPONSE_BYTES)
        except (OSError, HTTPException):
            # The status says whether the receiver has the request; the body is only shown.
            body = b""
        return SentResponse(response.status, headers, body)
    finally:
        response.close()
