"""The door granian opens."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

# Django is set up by this; the fast door can be imported only then.
django_application = get_wsgi_application()

from personas import key_uses  # noqa: E402  # see above
from project.fast_door import FastDoor  # noqa: E402  # see above
from project.metrics import counting  # noqa: E402  # see above

application = FastDoor(django_application)
counting.begin()
if settings.DRAMATIS_NOTE_KEY_USES:
    key_uses.begin()
