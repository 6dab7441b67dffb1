"""The settings: what production should not be run with."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from django.conf import settings

from project.doctor.results import Finding, fail, ok, warn
from prompts.integrity.signing import NoSigningKey, public_key_told

SHORTEST_SECRET = 50
NAME = "settings"


def look_at_settings() -> Iterator[Finding]:
    found = [*modes(), *addresses(), *doors()]
    yield from found or [ok(NAME, "Nothing in them stands out.")]
    yield signing()


def modes() -> Iterator[Finding]:
    if not settings.PRODUCTION:
        yield warn(
            NAME, "This is development.", "Set DRAMATIS_ENV=production where others than you rely on it."
        )
    if settings.DEBUG:
        yield fail(NAME, "Errors are shown with source code.", "Unset DRAMATIS_DEBUG.")
    if len(settings.SECRET_KEY) < SHORTEST_SECRET:
        yield fail(NAME, "SECRET_KEY is short.", "Make one of 64 random bytes, as .env.example shows.")


def addresses() -> Iterator[Finding]:
    host = urlsplit(settings.PUBLIC_URL).hostname or ""
    if settings.PRODUCTION and not settings.TLS:
        yield warn(NAME, "PUBLIC_URL is not https.", "Put a TLS proxy in front and name it with https.")
    elif settings.PRODUCTION and not settings.HSTS:
        yield warn(NAME, "Browsers are not told to keep to https.", "Once it works, set DRAMATIS_HSTS=true.")
    if "*" in settings.ALLOWED_HOSTS:
        yield fail(NAME, "Any host name is answered.", "Name the real ones in ALLOWED_HOSTS.")
    elif host not in settings.ALLOWED_HOSTS and f".{host.partition('.')[2]}" not in settings.ALLOWED_HOSTS:
        yield warn(NAME, f"{host} is not in ALLOWED_HOSTS.", "Add it, or PUBLIC_URL leads nowhere.")


def doors() -> Iterator[Finding]:
    if settings.PRODUCTION and not settings.DRAMATIS_REQUIRE_OWNER_MFA:
        yield warn(NAME, "Owners need no second factor.", "Unset DRAMATIS_REQUIRE_OWNER_MFA.")
    if settings.PRODUCTION and not (settings.DRAMATIS_METRICS_TOKEN or settings.DRAMATIS_METRICS_NETWORKS):
        yield warn(NAME, "Nobody can read /metrics.", "Set DRAMATIS_METRICS_TOKEN for your Prometheus.")


def signing() -> Finding:
    try:
        name, _ = public_key_told()
    except NoSigningKey as error:
        return fail("signing key", error.message, "Point DRAMATIS_SIGNING_KEY at an Ed25519 key in PEM.")
    return ok("signing key", f"Checkpoints are signed with {name}.")
