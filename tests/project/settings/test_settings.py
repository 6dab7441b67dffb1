"""The documented defaults of the settings."""

import json

import pytest
from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware

from project.database.config import build_database_config
from project.middleware.sessions import LoginMiddleware
from project.redis_client import build_celery_url, build_client_url
from tests.project.deployment.production_settings import COMPLETE, run_settings, settings_under


def test_bodies_end_at_one_mebibyte():
    assert settings.DATA_UPLOAD_MAX_MEMORY_SIZE == 1024 * 1024


def test_sessions_last_twelve_hours_and_one_idle():
    assert settings.SESSION_COOKIE_AGE == 12 * 3600
    assert settings.SESSION_IDLE_SECONDS == 3600
    assert settings.SESSION_TOUCH_SECONDS == 60
    assert settings.ACCOUNT_SESSION_REMEMBER is False


def test_log_in_limits():
    assert settings.ACCOUNT_RATE_LIMITS["login_failed"] == "5/15m/key"
    assert settings.NEW_DEVICE_LOGIN_LIMITS == "50/h/ip,5/15m/key"
    assert settings.KNOWN_DEVICE_LOGIN_LIMIT == "5/15m/key"
    assert settings.CACHES["default"]["BACKEND"].endswith("DatabaseCache")
    assert settings.CACHES["default"]["OPTIONS"]["MAX_ENTRIES"] >= 100_000


@pytest.mark.slow
def test_passwords_are_long_uncommon_and_hashed_with_argon2():
    validators = {
        row["NAME"].rpartition(".")[2]: row.get("OPTIONS", {}) for row in settings.AUTH_PASSWORD_VALIDATORS
    }
    assert validators["MinimumLengthValidator"] == {"min_length": 12}
    assert "CommonPasswordValidator" in validators
    assert settings_under({}, "PASSWORD_HASHERS")["PASSWORD_HASHERS"] == [
        "django.contrib.auth.hashers.Argon2PasswordHasher"
    ]


def test_access_is_denied_by_default():
    assert "project.middleware.sessions.LoginMiddleware" in settings.MIDDLEWARE
    assert issubclass(LoginMiddleware, LoginRequiredMiddleware)
    assert settings.REST_FRAMEWORK["DEFAULT_PERMISSION_CLASSES"] == [
        "rest_framework.permissions.IsAuthenticated"
    ]
    assert settings.REST_FRAMEWORK["DEFAULT_AUTHENTICATION_CLASSES"] == []


def test_no_folder_may_be_read_until_an_operator_says_so():
    name = "DRAMATIS_SOURCE_ROOTS"
    assert settings_under(COMPLETE, name)[name] == []
    named = {**COMPLETE, name: "/srv/files, /srv/more"}
    assert settings_under(named, name)[name] == ["/srv/files", "/srv/more"]
    # In development only the folder of the demo is allowed.
    development = settings_under({}, name, "VAR", "DEMO_SOURCES")
    assert development[name] == [development["DEMO_SOURCES"]] == [f"{development['VAR']}/demo"]


def test_second_factors_are_offered():
    assert set(settings.MFA_SUPPORTED_TYPES) == {"totp", "webauthn", "recovery_codes"}
    assert settings.MFA_PASSKEY_LOGIN_ENABLED


def test_jobs():
    assert settings.CELERY_TASK_ACKS_LATE
    assert settings.CELERY_TASK_REJECT_ON_WORKER_LOST
    assert settings.CELERY_WORKER_PREFETCH_MULTIPLIER == 1
    assert (settings.CELERY_TASK_SOFT_TIME_LIMIT, settings.CELERY_TASK_TIME_LIMIT) == (60, 90)
    assert settings.CELERY_TASK_PUBLISH_RETRY is False
    options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    assert options["visibility_timeout"] == 180 > settings.CELERY_TASK_TIME_LIMIT
    assert (options["unacked_restore_interval"], options["unacked_restore_throttle"]) == (5, 1)
    assert settings.CELERY_BEAT_SCHEDULE["sweep-sources"]["schedule"] == 10


def test_postgres_has_limits_a_pool_and_health_checks():
    config = build_database_config("postgresql://u@/d?host=/run/pg", pool_size=8, statement_ms=5_000)
    assert config["CONN_HEALTH_CHECKS"] is True
    assert config["OPTIONS"]["pool"]["timeout"] == 5
    assert config["OPTIONS"]["host"] == "/run/pg"
    for limit in ("statement_timeout=5000", "lock_timeout=2000", "idle_in_transaction_session_timeout=30000"):
        assert limit in config["OPTIONS"]["options"]


@pytest.mark.django_db
def test_the_database_in_use_obeys_its_limits():
    from django.db import connection

    queries: dict[str, dict[str, object]] = {
        "postgresql": {"SHOW statement_timeout": "5s", "SHOW lock_timeout": "2s"},
        "sqlite": {
            "PRAGMA journal_mode": "wal",
            "PRAGMA synchronous": 2,
            "PRAGMA foreign_keys": 1,
            "PRAGMA secure_delete": 1,
        },
    }
    with connection.cursor() as cursor:
        for query, answer in queries[connection.vendor].items():
            cursor.execute(query)
            assert cursor.fetchone()[0] == answer


def test_sqlite_waits_ten_seconds_and_locks_at_once():
    config = build_database_config("sqlite:////tmp/x.sqlite3", pool_size=1, statement_ms=0)
    assert config["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert config["OPTIONS"]["timeout"] == 10
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
        assert pragma in config["OPTIONS"]["init_command"]


def test_cookies_over_tls_are_bound_to_the_host():
    cookies = ("SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "DEVICE_COOKIE_NAME")
    names = (*cookies, "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE")
    tls = settings_under(
        COMPLETE, *names, "SESSION_COOKIE_HTTPONLY", "SESSION_COOKIE_SAMESITE", "SECURE_SSL_REDIRECT"
    )
    assert all(tls[name].startswith("__Host-") for name in cookies)
    assert all(tls[name] for name in ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT"))
    assert tls["SESSION_COOKIE_HTTPONLY"]
    assert tls["SESSION_COOKIE_SAMESITE"] == "Lax"
    plain = settings_under({}, *names)
    assert not plain["SESSION_COOKIE_NAME"].startswith("__Host-")
    assert not plain["SESSION_COOKIE_SECURE"]


@pytest.mark.slow
def test_hsts_waits_until_tls_is_confirmed():
    name = "SECURE_HSTS_SECONDS"
    assert settings_under(COMPLETE, name)[name] == 0
    assert settings_under({**COMPLETE, "DRAMATIS_HSTS": "true"}, name)[name] == 365 * 24 * 3600
    plain = {**COMPLETE, "DRAMATIS_HSTS": "true", "PUBLIC_URL": "http://intranet"}
    assert settings_under(plain, name)[name] == 0


def test_a_forwarded_scheme_counts_only_behind_a_proxy():
    name = "SECURE_PROXY_SSL_HEADER"
    assert settings_under(COMPLETE, name)[name] is None
    assert settings_under({**COMPLETE, "DRAMATIS_TRUSTED_PROXIES": "1"}, name)[name]


def test_production_is_stricter_than_development():
    names = (
        "DEBUG",
        "DRAMATIS_REQUIRE_OWNER_MFA",
        "MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN",
        "EMAIL_BACKEND",
        "STORAGES",
    )
    production = settings_under({**COMPLETE, "DRAMATIS_DEBUG": "true"}, *names)
    assert production["DEBUG"] is False
    assert production["DRAMATIS_REQUIRE_OWNER_MFA"] is True
    assert production["MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN"] is False
    assert production["EMAIL_BACKEND"] == "core.outgoing.email_backend.LimitedEmailBackend"
    assert "Manifest" in production["STORAGES"]["staticfiles"]["BACKEND"]
    development = settings_under({}, *names)
    assert development["DRAMATIS_REQUIRE_OWNER_MFA"] is False
    assert "dev_mail" in development["EMAIL_BACKEND"]


def test_development_keeps_one_signing_key():
    first, second = (json.loads(run_settings({}, "SECRET_KEY").stdout)["SECRET_KEY"] for _ in range(2))
    assert first == second
    assert len(first) > 50


def test_a_redis_socket_is_named_as_celery_and_the_client_want_it():
    assert build_celery_url("unix:///tmp/s?db=3") == "redis+socket:///tmp/s?virtual_host=3"
    assert build_client_url("redis+socket:///tmp/s?virtual_host=3") == "unix:///tmp/s?db=3"
    assert build_celery_url("redis://host/0") == build_client_url("redis://host/0") == "redis://host/0"
