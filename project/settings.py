"""Django settings from the environment: development needs no variable, production has no unsafe default."""

import logging
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django_stubs_ext
from csp.constants import NONE, SELF
from kombu import Queue

from project.database.config import (
    STATEMENT_TIMEOUT,
    build_database_config,
    build_pooled_config,
    build_replica_config,
    choose_database,
)
from project.env import (
    check_environment,
    env_bool,
    env_choice,
    env_int,
    env_list,
    env_networks,
    env_secret,
    env_str,
    environment_problems,
    requested_names,
)
from project.jobs.schedule import JOB_QUEUES, JOB_ROUTES, JOB_SCHEDULE
from project.limit_settings import *  # noqa: F403  # limits of workspaces, persons and addresses
from project.logs.config import build_logging_config, configure_structlog
from project.redis_client import build_celery_url
from project.supervisor.paths import get_development_key, get_valkey_socket

# Allow type arguments of Django classes at runtime, such as ModelForm[Agent].
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
MIN_SECRETS_KEY_LENGTH = 32
PRODUCTION = env_choice("DRAMATIS_ENV", ("development", "production")) == "production"
VAR = Path(env_str("DRAMATIS_VAR", str(BASE_DIR / "var"))).resolve()

# Off by default in development too, so that error pages are the same everywhere and show no source code.
DEBUG = env_bool("DRAMATIS_DEBUG", False) and not PRODUCTION
SECRET_KEY = env_secret("SECRET_KEY", needed=PRODUCTION) or ("" if PRODUCTION else get_development_key(VAR))
SECRET_KEY_FALLBACKS = env_list("SECRET_KEY_FALLBACKS")
# The keys that encrypt second factors and webhook secrets in the database are derived from these texts. The
# first one encrypts, or SECRET_KEY if there is none. All of them, SECRET_KEY and its fallbacks decrypt.
DRAMATIS_SECRETS_KEYS = env_list("DRAMATIS_SECRETS_KEYS")
if any(len(text) < MIN_SECRETS_KEY_LENGTH for text in DRAMATIS_SECRETS_KEYS):
    environment_problems.append(
        f"DRAMATIS_SECRETS_KEYS must contain keys of at least {MIN_SECRETS_KEY_LENGTH} characters"
    )

# --- URLs and hosts ----------------------------------------------------------------------------------
PUBLIC_URL = env_secret("PUBLIC_URL", needed=PRODUCTION, default="http://localhost:8000").rstrip("/")
TLS = urlsplit(PUBLIC_URL).scheme == "https"
if urlsplit(PUBLIC_URL).scheme not in {"http", "https"}:
    environment_problems.append(f"PUBLIC_URL must start with http:// or https://, not {PUBLIC_URL!r}")
ALLOWED_HOSTS = env_secret("ALLOWED_HOSTS", needed=PRODUCTION) and env_list("ALLOWED_HOSTS")
ALLOWED_HOSTS = ALLOWED_HOSTS or ["localhost", "127.0.0.1", "[::1]"]
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS", (PUBLIC_URL,))
ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"

# --- Apps, middleware, templates ---------------------------------------------------------------------
INSTALLED_APPS = [
    "project.apps.ProjectConfig",
    "personas",
    "skills",
    "prompts",
    "project.apps.OperatorConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "django_htmx",
    "rest_framework",
    "csp",
    "django_structlog",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    # Near the top, so that responses of the middleware below have the Content-Security-Policy header too.
    "csp.middleware.CSPMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # After WhiteNoise, whose files are compressed already.
    "project.middleware.compression.CompressionMiddleware",
    # Before all middleware that queries the database.
    "project.middleware.row_level_security.RowLevelSecurityMiddleware",
    "project.metrics.collectors.RequestMetricsMiddleware",
    "project.middleware.request_log.RequestLogMiddleware",
    "project.middleware.body_size.BodyLimitMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "project.middleware.sessions.SessionLimitsMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "allauth.usersessions.middleware.UserSessionsMiddleware",
    "project.middleware.sessions.LoginMiddleware",
    # After the login check: CSRF checks read the body, and visitors must not make the server wait for it.
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "prompts.publishing.builds.middleware.RebuildCountsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "personas.tenancy.middleware.TenancyMiddleware",
    "core.db.replica.ReadYourWritesMiddleware",
    "prompts.publishing.review.middleware.ReviewMiddleware",
]
# The function of the review step. Views that are called again after a reauthentication, without middleware,
# call it themselves.
REVIEW_STEP = "prompts.publishing.review.middleware.run_review_step"
# Renders widgets with Jinja2, because Django's templates include another template for each option of a list.
FORM_RENDERER = "project.form_renderer.WidgetRenderer"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "personas.tenancy.context_processors.page_context",
            ],
        },
    },
    # Only for the rows of long lists: docs/decisions/0020-jinja2-for-long-lists.md.
    {
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {"environment": "project.jinja.build_environment"},
    },
]
# Messages are stored in the session, so that there is no further cookie to protect.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

# --- Data --------------------------------------------------------------------------------------------
DATABASE_STATEMENT_MS = env_int("DATABASE_STATEMENT_MS", STATEMENT_TIMEOUT)
DATABASE_DIRECT = build_database_config(
    env_secret("DATABASE_URL", needed=PRODUCTION, default=f"sqlite:///{VAR / 'dramatis.sqlite3'}"),
    pool_size=env_int("DATABASE_POOL_SIZE", 8),
    # In milliseconds. 0 disables the timeout; use it for migrations of large tables.
    statement_ms=DATABASE_STATEMENT_MS,
    password=env_secret("DATABASE_PASSWORD", needed=False),
)
# The same database through PgBouncer in transaction mode, for web, workers and beat: docs/deployment.md.
DATABASE_POOLED: dict[str, Any] | None = None
DATABASE_POOLED_URL = env_secret("DATABASE_POOLED_URL", needed=False)
# Whether the pooler supports prepared statements: PgBouncer 1.21 or newer with max_prepared_statements.
DATABASE_POOLER_PREPARES = env_bool("DATABASE_POOLER_PREPARES", False)
if DATABASE_POOLED_URL:
    if "sqlite" in DATABASE_DIRECT["ENGINE"] or not DATABASE_POOLED_URL.startswith("postgres"):
        environment_problems.append("DATABASE_POOLED_URL requires PostgreSQL, also in DATABASE_URL")
    else:
        DATABASE_POOLED = build_pooled_config(
            DATABASE_POOLED_URL,
            DATABASE_DIRECT,
            pool_size=env_int("DATABASE_POOL_SIZE", 8),
            prepares=DATABASE_POOLER_PREPARES,
            password=env_secret("DATABASE_PASSWORD", needed=False),
        )
DATABASES = {"default": choose_database(DATABASE_DIRECT, DATABASE_POOLED)}
# Read replica for reads that may be a few seconds old; docs/scaling.md lists them.
if DATABASE_REPLICA_URL := env_secret("DATABASE_REPLICA_URL", needed=False):
    if "sqlite" in DATABASES["default"]["ENGINE"] or not DATABASE_REPLICA_URL.startswith("postgres"):
        environment_problems.append("DATABASE_REPLICA_URL requires PostgreSQL, also in DATABASE_URL")
    else:
        DATABASES["replica"] = build_replica_config(
            DATABASE_REPLICA_URL,
            statement_ms=DATABASE_STATEMENT_MS,
            password=env_secret("DATABASE_PASSWORD", needed=False),
        )
# Only for `manage.py create_db_role`: the password of the role that web, worker and beat use.
DATABASE_APP_PASSWORD = env_secret("DATABASE_APP_PASSWORD", needed=False)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES: dict[str, dict[str, Any]] = {
    "default": {
        # The cache is in the database and not in Redis, because it contains the counters of the login rate
        # limits. All processes share them, and they must survive a Redis outage.
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "project_cache",
        # With Django's default of 300 entries an attacker could evict the counters of the rate limits.
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}
REDIS_URL = env_secret("REDIS_URL", needed=PRODUCTION, default=f"unix://{get_valkey_socket(VAR)}")
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1_000
DATA_UPLOAD_MAX_NUMBER_FILES = 200
# Limits for slow clients (decision 0018). How many threads of a web process may read a request body at once:
# half of the server's --blocking-threads, so that the rest is free for other requests.
DRAMATIS_BODY_THREADS = env_int("DRAMATIS_BODY_THREADS", 8)
# Seconds that a client may take to send a body, or pause while it reads a response. Must be less than
# DRAMATIS_REQUEST_SECONDS.
DRAMATIS_BODY_SECONDS = env_int("DRAMATIS_BODY_SECONDS", 15)
# Seconds for a whole request. The default leaves time to end the request within 30 seconds.
DRAMATIS_REQUEST_SECONDS = env_int("DRAMATIS_REQUEST_SECONDS", 25)

# --- Users and authentication ------------------------------------------------------------------------
AUTH_USER_MODEL = "personas.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS: list[dict[str, Any]] = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
DRAMATIS_SIGNUP = env_bool("DRAMATIS_SIGNUP", True)
DRAMATIS_REQUIRE_OWNER_MFA = env_bool("DRAMATIS_REQUIRE_OWNER_MFA", PRODUCTION)
# Minutes after which operators must confirm their second factor again at /operator/.
DRAMATIS_OPERATOR_MINUTES = env_int("DRAMATIS_OPERATOR_MINUTES", 15)
ACCOUNT_ADAPTER = "personas.accounts.account_adapter.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if TLS else "http"
ACCOUNT_REAUTHENTICATION_REQUIRED = True
# The cookie ends with the browser session; SESSION_COOKIE_AGE and SESSION_IDLE_SECONDS limit the session.
ACCOUNT_SESSION_REMEMBER = False
ACCOUNT_FORMS = {"signup": "personas.accounts.forms.EqualTimeSignupForm"}
USERSESSIONS_ADAPTER = "personas.accounts.account_adapter.SessionsAdapter"
# Limit on wrong second-factor codes. The key is the user, whose password was correct.
ACCOUNT_RATE_LIMITS = {"login_failed": "5/15m/key"}
# Limits on wrong passwords from an unknown device: fifty per IP address in an hour, and five per account and
# IP address in 15 minutes. The growing delay of personas/accounts/sign_in_delays.py is applied as well.
NEW_DEVICE_LOGIN_LIMITS = "50/h/ip,5/15m/key"
# Limit on wrong passwords from a known device of the account, regardless of attempts by others.
KNOWN_DEVICE_LOGIN_LIMIT = "5/15m/key"
ALLAUTH_TRUSTED_PROXY_COUNT = env_int("DRAMATIS_TRUSTED_PROXIES", 0)
MFA_ADAPTER = "personas.accounts.second_factors.EncryptingMFAAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Dramatis"
# In development, passkeys must work without TLS. Browsers allow that on localhost only.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not PRODUCTION

# --- Sessions, cookies, headers ----------------------------------------------------------------------
SESSION_ENGINE = "project.session_store"
SESSION_COOKIE_AGE = 12 * 3600
SESSION_IDLE_SECONDS = 3600
SESSION_TOUCH_SECONDS = 60
# Browsers accept a cookie with the prefix __Host- only over HTTPS, for this exact host and the path /.
SESSION_COOKIE_NAME = "__Host-dramatis-session" if TLS else "dramatis-session"
CSRF_COOKIE_NAME = "__Host-dramatis-csrf" if TLS else "dramatis-csrf"
# Marks a browser with which a user has signed in before; see personas/accounts/known_devices.py.
DEVICE_COOKIE_NAME = "__Host-dramatis-device" if TLS else "dramatis-device"
DEVICE_COOKIE_AGE = 180 * 24 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = TLS
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = TLS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
# A client could send this header itself, so it is trusted only behind a trusted proxy, which overwrites it.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if ALLAUTH_TRUSTED_PROXY_COUNT else None
# Off by default: browsers remember HSTS for a year, so enable it only after TLS is known to work.
HSTS = env_bool("DRAMATIS_HSTS", False) and TLS
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if HSTS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HSTS
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

# --- Email -------------------------------------------------------------------------------------------
EMAIL_BACKEND = (
    "core.outgoing.email_backend.LimitedEmailBackend"
    if PRODUCTION
    else "project.dev_mail.backend.EmailBackend"
)
EMAIL_HOST = env_secret("EMAIL_HOST", needed=PRODUCTION, default="localhost")
EMAIL_PORT = env_int("EMAIL_PORT", 587)
EMAIL_HOST_USER = env_str("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env_secret("EMAIL_HOST_PASSWORD", needed=False)
EMAIL_USE_TLS = env_bool("EMAIL_USE_TLS", True)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env_str("DEFAULT_FROM_EMAIL", "Dramatis <dramatis@localhost>")

# --- Language, time, static files --------------------------------------------------------------------
# The source language is English. A translation is a folder in locale/ and a line in LANGUAGES.
# LocaleMiddleware is not used: it would add Vary: Accept-Language to every response, including those of the
# API and prompts, which do not depend on the language. A second language would be a setting in the user's
# profile, next to the timezone.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "static/"
STATIC_ROOT = VAR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
MANIFEST_STORAGE = "whitenoise.storage.CompressedManifestStaticFilesStorage"
PLAIN_STORAGE = "django.contrib.staticfiles.storage.StaticFilesStorage"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": MANIFEST_STORAGE if PRODUCTION else PLAIN_STORAGE},
}
# Development serves the files from their source folders, so collectstatic is not needed.
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = not PRODUCTION

# --- API ---------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    # Access is denied by default. Views authenticate API keys themselves and never use cookies.
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    # `format` is an ordinary query parameter: the Accept header chooses the representation.
    "URL_FORMAT_OVERRIDE": None,
}
# Whether servers record when keys were last used; a background thread writes it periodically.
DRAMATIS_NOTE_KEY_USES = env_bool("DRAMATIS_NOTE_KEY_USES", True)
# Number of web processes. Each has its own rate limiter, so the limits are divided by this number.
DRAMATIS_WEB_PROCESSES = env_int("DRAMATIS_WEB_PROCESSES", 1)
# Folders that workspaces may use as sources; none by default in production. In development the folder with
# the files of the demo is allowed.
DEMO_SOURCES = VAR / "demo"
DRAMATIS_SOURCE_ROOTS = [
    Path(root) for root in env_list("DRAMATIS_SOURCE_ROOTS", () if PRODUCTION else (str(DEMO_SOURCES),))
]

# If an edit affects at most this many prompts, the request builds them; otherwise workers build them.
DRAMATIS_BUILD_AT_ONCE = env_int("DRAMATIS_BUILD_AT_ONCE", 20)
# Agents per build job. The number is small, so that many workers share the work of a large change.
DRAMATIS_BUILD_BATCH = 25
# Key that signs checkpoints: a private key in PEM format, or the path of its file. It is generated in
# development. In production only the worker needs it.
DRAMATIS_SIGNING_KEY = env_secret("DRAMATIS_SIGNING_KEY", needed=False)
# Keys whose checkpoints are valid: key ids and public keys in PEM format, separated by commas or spaces. If
# this is empty, only the signing key above is trusted.
DRAMATIS_TRUSTED_KEYS = env_str("DRAMATIS_TRUSTED_KEYS")
if PRODUCTION and not (DRAMATIS_SIGNING_KEY or DRAMATIS_TRUSTED_KEYS):
    environment_problems.append(
        "DRAMATIS_SIGNING_KEY is not set (DRAMATIS_TRUSTED_KEYS is enough where another process signs)"
    )
# Folder for the second copy of every checkpoint, which operators copy to another system.
DRAMATIS_CHECKPOINT_DIR = Path(env_str("DRAMATIS_CHECKPOINT_DIR", str(VAR / "checkpoints")))

# --- Operations --------------------------------------------------------------------------------------
# Access to /metrics: clients with the token, and clients that connect directly from one of the networks. In
# production there is no default network, because behind a proxy every client seems to be local.
DRAMATIS_METRICS_TOKEN = env_secret("DRAMATIS_METRICS_TOKEN", needed=False)
LOCAL_NETWORKS = () if PRODUCTION else ("127.0.0.0/8", "::1")
DRAMATIS_METRICS_NETWORKS = env_networks("DRAMATIS_METRICS_NETWORKS", LOCAL_NETWORKS)
# Hosts and networks that webhooks may reach although they are not public, optionally with a port (host:port).
DRAMATIS_OUTGOING_ALLOWED = env_list("DRAMATIS_OUTGOING_ALLOWED")
# Whether to log successful fetches, which are in the ledger anyway, and whether to write a span for each
# fetch (core/spans.py).
DRAMATIS_LOG_FETCHES = env_bool("DRAMATIS_LOG_FETCHES", False)
DRAMATIS_TRACING = env_bool("DRAMATIS_TRACING", False)
# Seconds that the clock may differ from PostgreSQL's before the process corrects its time; 0 means no limit.
DRAMATIS_MAX_CLOCK_SKEW = env_int("DRAMATIS_MAX_CLOCK_SKEW", 30)
# Retention in days: of refresh runs (the newest of each source is always kept), abandoned drafts, security
# events, reports, verification runs, and contents and file revisions that nothing refers to. The retention of
# events is in months. 0 keeps them forever.
DRAMATIS_KEEP_RUNS_DAYS = env_int("DRAMATIS_KEEP_RUNS_DAYS", 30)
DRAMATIS_KEEP_DRAFTS_DAYS = env_int("DRAMATIS_KEEP_DRAFTS_DAYS", 90)
DRAMATIS_KEEP_SECURITY_EVENTS_DAYS = env_int("DRAMATIS_KEEP_SECURITY_EVENTS_DAYS", 180)
DRAMATIS_KEEP_REPORTS_DAYS = env_int("DRAMATIS_KEEP_REPORTS_DAYS", 180)
DRAMATIS_KEEP_VERIFICATIONS_DAYS = env_int("DRAMATIS_KEEP_VERIFICATIONS_DAYS", 365)
DRAMATIS_KEEP_EVENTS_MONTHS = env_int("DRAMATIS_KEEP_EVENTS_MONTHS", 6)
DRAMATIS_KEEP_UNUSED_DAYS = env_int("DRAMATIS_KEEP_UNUSED_DAYS", 30)
# The folder of pg_dump and pg_restore if they are not on the PATH.
DRAMATIS_POSTGRES_PROGRAMS = env_str("DRAMATIS_POSTGRES_PROGRAMS")

# --- Jobs --------------------------------------------------------------------------------------------
CELERY_BROKER_URL = build_celery_url(REDIS_URL)
CELERY_TASK_QUEUES = [Queue(name) for name in JOB_QUEUES]
CELERY_TASK_DEFAULT_QUEUE = JOB_QUEUES[0]
CELERY_TASK_ROUTES = JOB_ROUTES
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_SOFT_TIME_LIMIT = 60
CELERY_TASK_TIME_LIMIT = 90
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONSUMER = "project.jobs.consumer:ReconnectingConsumer"
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_TIMEOUT = 1
# Publishing a job is not retried, because a frozen Redis must not block a page. The periodic sweep finds the
# work later.
CELERY_TASK_PUBLISH_RETRY = False
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": 1,
    "socket_connect_timeout": 1,
    "retry_on_timeout": False,
    "max_retries": 0,
    # In seconds. Longer than CELERY_TASK_TIME_LIMIT, otherwise a running job would be delivered twice.
    "visibility_timeout": 180,
    # Search for messages of lost workers every 5 seconds. With kombu's defaults, an interval of 10 seconds
    # and a search at every tenth interval, they are redelivered only after minutes.
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
}
# Folder of the liveness files that worker and beat touch for the container health checks. If it is empty, no
# files are written.
DRAMATIS_ALIVE_DIR = env_str("DRAMATIS_ALIVE_DIR")
CELERY_BEAT_SCHEDULER = "project.jobs.beat.LivenessScheduler"
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR / "beat-schedule")
CELERY_BEAT_SCHEDULE = JOB_SCHEDULE

# --- Log ---------------------------------------------------------------------------------------------
DJANGO_STRUCTLOG_CELERY_ENABLED = True
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False
DJANGO_STRUCTLOG_STATUS_START_LOG_LEVEL = logging.DEBUG
LOGGING = build_logging_config(
    json=PRODUCTION, level=env_choice("LOG_LEVEL", ("INFO", "DEBUG", "WARNING", "ERROR"))
)
configure_structlog()

ENVIRONMENT_NAMES = sorted(requested_names)
check_environment()
