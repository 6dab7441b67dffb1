"""Long-running processes collect garbage less often; cycles are still collected."""

import subprocess
import sys
import textwrap

SCRIPT = """
import gc, weakref
from core.garbage_collection import THRESHOLDS, tune_garbage_collection

class Node:
    pass

kept = [Node() for _ in range(1_000)]
tune_garbage_collection()
assert gc.get_freeze_count() > 1_000
assert gc.get_threshold() == THRESHOLDS
node = Node()
node.itself = node
reference = weakref.ref(node)
del node
others = [[] for _ in range(THRESHOLDS[0] + 1_000)]
assert reference() is None, "the cycle was not collected"
"""


def test_existing_objects_are_excluded_and_new_cycles_are_collected():
    subprocess.run([sys.executable, "-c", textwrap.dedent(SCRIPT)], check=True)
