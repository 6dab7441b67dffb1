"""WSGI application, served by granian: the fetch fast path and the request limits around Django."""

import os
import sys

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

# This call sets up Django, which the imports below need.
django_application = get_wsgi_application()

from core.garbage_collection import tune_garbage_collection  # noqa: E402  # see above
from personas.api_keys import last_used  # noqa: E402  # see above
from project.fetch_fast_path import FetchFastPath  # noqa: E402  # see above
from project.metrics import counters  # noqa: E402  # see above
from project.request_limits import connections, deadlines  # noqa: E402  # see above
from project.request_limits.wsgi import RequestLimits  # noqa: E402  # see above

# Seconds until a thread must let another one run. A fetch waits for the database several times, and each time
# afterwards for threads that compute. With Python's default of 5 ms, fetches took a third longer during a
# flood of other requests.
SWITCH_INTERVAL = 0.001

application = FetchFastPath(RequestLimits(django_application))
counters.start_counting()
deadlines.start_watchdog()
connections.start_closing()
if settings.DRAMATIS_NOTE_KEY_USES:
    last_used.start_tracking()
tune_garbage_collection()
sys.setswitchinterval(SWITCH_INTERVAL)
