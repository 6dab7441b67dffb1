"""Settings of Python's garbage collector for processes that run for long.

By default it looks at all objects of the product, which never become garbage, again and again: about 15 % of
the time of a build.
"""

import gc

# New objects before a collection of the youngest, and collections before one of the next older ones. A build
# of 25 agents creates some hundred thousand objects, few of them in cycles.
THRESHOLDS = (20_000, 20, 50)


def tune_garbage_collection() -> None:
    """Exclude the objects that exist now from collections, and collect less often. Call it after start-up."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
