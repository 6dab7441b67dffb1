"""The WSGI module sets up a web process."""

import subprocess
import sys

from tests.project.deployment.production_settings import ROOT

# In a process of its own, because the module starts threads.
SCRIPT = """
import sys
from project.wsgi import SWITCH_INTERVAL
assert SWITCH_INTERVAL < 0.005
assert abs(sys.getswitchinterval() - SWITCH_INTERVAL) < 1e-6
"""


def test_threads_that_compute_let_others_run_soon():
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, cwd=ROOT)
