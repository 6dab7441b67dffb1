"""The product's settings with high rate limits, and with the URL of the naive implementation."""

from project.settings import *  # noqa: F403  # all of them

ROOT_URLCONF = "benches.fetch_urls"
DRAMATIS_RATE_LIMITS = dict.fromkeys(("fetch", "read", "write", "render"), (10**9, 10**9))
