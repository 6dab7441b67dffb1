"""ASGI application. It starts the same background threads as project/wsgi.py, but has no fetch fast path."""

import os

from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

application = get_asgi_application()

from personas.api_keys import last_used  # noqa: E402  # Django must be set up before
from project.metrics import counters  # noqa: E402  # as above

counters.start_counting()

if settings.DRAMATIS_NOTE_KEY_USES:
    last_used.start_tracking()
