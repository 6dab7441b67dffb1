"""Import modules of `.ci`, which is not a package."""

import importlib.util
import sys
from typing import Any

from tests.project.deployment.production_settings import ROOT


def load_ci_module(name: str) -> Any:
    """Import `.ci/NAME.py`, which may import its neighbours as when it runs as a script."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
