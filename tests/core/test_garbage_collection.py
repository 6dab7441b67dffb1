"""Processes collect no garbage while they start, and less often later; cycles are still collected."""

import subprocess
import sys
import textwrap

from tests.project.deployment.production_settings import ROOT

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


START = """
import gc
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
import project
from core.garbage_collection import START_THRESHOLD, THRESHOLDS
assert gc.get_threshold()[0] == START_THRESHOLD
import django
django.setup()
assert gc.get_threshold() == THRESHOLDS
assert gc.get_freeze_count() > 100_000
"""


def test_nothing_is_collected_until_the_models_are_imported():
    subprocess.run([sys.executable, "-c", START], check=True, cwd=ROOT)
