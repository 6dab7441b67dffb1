"""Settings of the baseline server: no middleware, and one URL with a view that does nothing."""

from project.settings import *  # noqa: F403  # all of them
from project.settings import INSTALLED_APPS as ALL

# allauth requires its middleware.
INSTALLED_APPS = [name for name in ALL if not name.startswith("allauth")]
MIDDLEWARE = []
ROOT_URLCONF = "benches.bare_urls"
