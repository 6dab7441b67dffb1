"""Settings of Python's garbage collector.

By default it looks at all objects of the product, which never become garbage, again and again: about 15 % of
the time of a start, and of a build.
"""

import gc

# How many new objects cause a collection of the youngest generation, and how many collections of one
# generation cause one of the next. A build of 25 agents creates several hundred thousand objects, few of them
# in cycles.
THRESHOLDS = (20_000, 20, 50)


# More objects than the imports of the product create. Not `gc.disable()`, because `exclude_imported_objects`
# may never be called.
START_THRESHOLD = 500_000


def postpone_garbage_collection() -> None:
    """Collect nothing while the product is imported. Call it first."""
    gc.set_threshold(START_THRESHOLD)


def exclude_imported_objects() -> None:
    """Exclude the objects that exist now from collections, and collect less often than by default."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def tune_garbage_collection() -> None:
    """Exclude also what start-up has created. Call it at the end of the start of a process that runs long."""
    gc.collect()
    exclude_imported_objects()
