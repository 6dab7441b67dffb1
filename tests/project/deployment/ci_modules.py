"""Import modules of `.ci`, which is not a package."""

import importlib.util
from typing import Any

from tests.project.deployment.production_settings import ROOT


def load_ci_module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
