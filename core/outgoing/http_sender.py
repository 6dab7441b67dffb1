"""Send HTTP requests to addresses that users enter, without access to internal networks (SSRF).

The host is resolved once, every address of it is checked, and the connection goes to a checked address, so a
name that resolves differently the second time (DNS rebinding) gains nothing. Redirects are not followed, no
proxy of the environment is used, and the whole request has one time limit. Head and body of the response
together have a limit of bytes, which the reader of the socket counts: http.client reads without end for some
framings, such as a negative chunk size. Nothing else in the product opens connections to such addresses.

Requests are sent by workers only. A web thread calls `check_url`, which asks no name server.
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
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
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
# Limits everything that is read of a response: interim responses, status, headers, framing and body.
MAX_RECEIVED_BYTES = 80 * 1024
# Visible ASCII characters, except those that URL parsers disagree about.
URL_PATTERN = re.compile(r"[!#-;=?-\[\]_a-z~]+")
# As in browsers, a host whose last part is a number is either an IPv4 address or invalid.
NUMBER_PATTERN = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?")
# Domains that no public name server answers for.
RESERVED_NAMES = ("localhost", "localdomain", "local", "internal", "invalid", "home.arpa", "onion")
HOST_PATTERN = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\.?|[0-9a-f:.]+")
# Addresses that are not public: this network, private, shared (CGNAT), loopback, link-local, protocol
# assignments, documentation, 6to4 relays, benchmarks, multicast, reserved and broadcast.
INTERNAL_IPV4 = [
    ip_network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
]
# Only global unicast IPv6 addresses are public. That excludes loopback, mapped and compatible IPv4, NAT64,
# unique local, link-local, site-local and multicast addresses. INTERNAL_IPV6 has the exceptions: protocol
# assignments with Teredo, documentation and 6to4.
PUBLIC_IPV6 = ip_network("2000::/3")
INTERNAL_IPV6 = [ip_network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]


class OutgoingError(Exception):
    """A request could not be sent, or got no response. The text is for users and names no address."""


class ForbiddenUrl(OutgoingError):
    """The URL must not be requested. The text is the same for internal hosts and for unknown ones."""


class ResponseTooLarge(HTTPException):
    """The response has more bytes than are read."""


@dataclass(frozen=True)
class AllowedTarget:
    """A host or network that the operator allows, with one port or with the usual ones."""

    host: str
    port: int | None
    network: IPv4Network | IPv6Network | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `host`, `host:port`, `10.0.0.0/8`, `10.0.0.0/8:port`, `fd00::/8` or `[fd00::/8]:port`."""
        match = re.fullmatch(r"(\[[^\]]+\]|[^:]+):([0-9]{1,5})", text)
        host, port = (match[1], int(match[2])) if match else (text, None)
        host = host.strip("[]").lower()
        try:
            return cls(host, port, ip_network(host))
        except ValueError:
            return cls(host, port, None)

    def has_host(self, host: str) -> bool:
        return host.rstrip(".") == self.host


@dataclass(frozen=True)
class OutgoingPolicy:
    """Which URLs may be requested. `allowed` are hosts and networks that the operator allows.

    With `is_https_only`, an entry of `allowed` without a port opens the usual ports of its host only: the
    other ports of an internal host belong to services that tenants must not reach.
    """

    is_https_only: bool
    allowed: Sequence[str] = ()

    @classmethod
    def from_settings(cls) -> Self:
        return cls(settings.PRODUCTION, tuple(settings.DRAMATIS_OUTGOING_ALLOWED))

    @property
    def targets(self) -> list[AllowedTarget]:
        return [AllowedTarget.parse(text) for text in self.allowed]

    def is_usual_port(self, port: int) -> bool:
        return not self.is_https_only or port in SECURE_PORTS

    def is_allowed_port(self, host: str, port: int) -> bool:
        """Whether some address of the host may be allowed with this port. A network may contain any host."""
        ports = [target.port for target in self.targets if target.network or target.has_host(host)]
        return self.is_usual_port(port) or port in ports

    def is_allowed_host(self, host: str, port: int) -> bool:
        return any(target.has_host(host) and self._has_port(target, port) for target in self.targets)

    def is_allowed_address(self, address: Address, port: int) -> bool:
        if is_public_address(address) and self.is_usual_port(port):
            return True
        networks = [target.network for target in self.targets if self._has_port(target, port)]
        return any(network and address in network for network in networks)

    def _has_port(self, target: AllowedTarget, port: int) -> bool:
        return self.is_usual_port(port) if target.port is None else port == target.port


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

    def check_url(self, url: str) -> None:
        """Raise ForbiddenUrl if the URL certainly must not be requested. This asks no name server.

        What a name means is checked with each request: it can change, and its name server may be slow.
        """
        _, host, port = parse_url(url, self.policy)
        addresses = resolve_number(host, port)
        if addresses is None and (self.policy.allowed or not is_reserved_name(host)):
            return
        self._check_addresses(host, port, addresses or [])

    def find_target(self, url: str) -> Target:
        """Resolve the host of a URL. Raise ForbiddenUrl if it must not be requested."""
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
        except ResponseTooLarge:
            raise OutgoingError("The head of the response is too large.") from None
        except (OSError, HTTPException):
            raise OutgoingError("The connection failed.") from None

    def _find_target(self, url: str, deadline: float) -> Target:
        parts, host, port = parse_url(url, self.policy)
        addresses = resolve_number(host, port)
        if addresses is None:
            addresses = resolve_in_time(self.resolve, host, port, min(get_rest(deadline), CONNECT_SECONDS))
        self._check_addresses(host, port, addresses)
        return Target(parts, host, port, addresses)

    def _check_addresses(self, host: str, port: int, addresses: Sequence[str]) -> None:
        def is_allowed(text: str) -> bool:
            return self.policy.is_allowed_address(ip_address(text), port)

        if not addresses or not (self.policy.is_allowed_host(host, port) or all(map(is_allowed, addresses))):
            raise ForbiddenUrl("This URL cannot be used: its host has no public address.")


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
    if not policy.is_allowed_port(host, port):
        raise ForbiddenUrl("The port must be 443 or 8443.")
    return parts, host, port


def resolve_host(host: str, port: int, flags: int = 0) -> list[str]:
    """Return all addresses of a host, or of a number such as 127.1 or 0x7f000001."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def resolve_number(host: str, port: int) -> Sequence[str] | None:
    """Return the address of a host that is a number, without a name server, and None for a name.

    A number that is no address, such as 999.999.999.999, has none.
    """
    if ":" not in host and not NUMBER_PATTERN.fullmatch(host):
        return None
    return resolve_host(host, port, socket.AI_NUMERICHOST)


def is_reserved_name(host: str) -> bool:
    name = host.rstrip(".")
    return "." not in name or any(name.endswith(f".{reserved}") for reserved in RESERVED_NAMES)


def resolve_in_time(resolve: Resolver, host: str, port: int, seconds: float) -> Sequence[str]:
    """Resolve a host in a thread of its own: the resolver of the system has no time limit."""
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
    """Reads from a socket until a deadline, and MAX_RECEIVED_BYTES at most.

    The timeout of a socket begins again with each byte.
    """

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self.connection, self.deadline = connection, deadline
        self.rest = MAX_RECEIVED_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.rest <= 0:
            raise ResponseTooLarge
        self.connection.settimeout(get_rest(self.deadline))
        count = self.connection.recv_into(buffer, min(len(buffer), self.rest))
        self.rest -= count
        return count


@dataclass(frozen=True)
class DeadlineSocket:
    """What HTTPResponse needs of a socket: a file to read from."""

    connection: socket.socket
    deadline: float

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(DeadlineReader(self.connection, self.deadline))


def read_response(connection: socket.socket, deadline: float) -> SentResponse:
    """Read status and headers, and the body up to MAX_RESPONSE_BYTES. Nothing is decompressed."""
    response = HTTPResponse(DeadlineSocket(connection, deadline), method="POST")  # type: ignore[arg-type]
    try:
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        try:
            body = response.read(MAX_RESPONSE_BYTES)
        except (OSError, HTTPException, ValueError, OverflowError):
            # The body is only shown; the status says whether the receiver got the request. ValueError and
            # OverflowError are raised for chunk sizes below -1.
            body = b""
        return SentResponse(response.status, headers, body)
    finally:
        response.close()
