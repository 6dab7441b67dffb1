"""Number of generated examples (Hypothesis): few in normal runs, all in `hard` tests."""

import os
from typing import Any

from hypothesis import HealthCheck, settings

HARD = "DRAMATIS_TEST_HARD"
FEW = 40


def choose(markers: str) -> None:
    """Set the profile before tests are loaded; xdist workers inherit the environment variable."""
    if "not hard" not in markers:
        os.environ[HARD] = "yes"
    count: dict[str, Any] = {} if HARD in os.environ else {"max_examples": FEW}
    # How long the generation and an example take depends on the load of the machine, and how many of the
    # first values a test can use depends on the seed.
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    settings.register_profile("this run", suppress_health_check=checks, deadline=None, **count)
    settings.load_profile("this run")


def examples(few: int, *, hard: int) -> int:
    """The number of examples of this run; each run generates different ones."""
    return hard if HARD in os.environ else few
