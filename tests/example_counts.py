"""How many generated examples a test asks for: few in every run, all of them among the long proofs."""

import os

from hypothesis import settings

HARD = "DRAMATIS_TEST_HARD"
FEW = 40


def choose(markers: str) -> None:
    """Known before any test is loaded, and inherited by the processes that run them."""
    if "not hard" not in markers:
        os.environ[HARD] = "yes"
    if HARD not in os.environ:
        settings.register_profile("every run", max_examples=FEW)
        settings.load_profile("every run")


def examples(few: int, *, hard: int) -> int:
    """Other examples come with every run, so few each time are many in a week."""
    return hard if HARD in os.environ else few
