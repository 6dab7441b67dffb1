"""The product's own settings, with room in the budgets and one address more: the naive way."""

from project.settings import *  # noqa: F403  # all of them

ROOT_URLCONF = "benches.fetch_urls"
DRAMATIS_RATE_LIMITS = dict.fromkeys(("fetch", "read", "write", "render"), (10**9, 10**9))
