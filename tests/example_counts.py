"""Number of generated examples (Hypothesis): few in normal runs, all in `hard` tests."""

import os

from hypothesis import settings

HARD = "DRAMATIS_TEST_HARD"
FEW = 40


def choose(markers: str) -> None:
    """Set the profile before tests are loaded; xdist workers inherit the environment variable."""
    if "not hard" not in markers:
        os.environ[HARD] = "yes"
    if HARD not in os.environ:
        settings.register_profile("every run", max_examples=FEW)
        settings.load_profile("every run")


def examples(few: int, *, hard: int) -> int:
    """The number of examples of this run; each run generates different ones."""
    return hard if HARD in os.environ else few
