"""The same server for a view that does nothing: no middleware at all, and no address but its own."""

from project.settings import *  # noqa: F403  # all of them
from project.settings import INSTALLED_APPS as ALL

# Log-in insists on its middleware.
INSTALLED_APPS = [name for name in ALL if not name.startswith("allauth")]
MIDDLEWARE = []
ROOT_URLCONF = "benches.bare_urls"
