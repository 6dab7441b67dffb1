"""Settings of the baseline server: no middleware, and one URL with a view that does nothing."""

from project.settings import *  # noqa: F403  # all of them


class NoMiddleware(list[str]):
    """An empty list that passes the check of allauth, which requires its middleware to be listed."""

    def __contains__(self, name: object) -> bool:
        return True


MIDDLEWARE = NoMiddleware()
ROOT_URLCONF = "benches.bare_urls"
