"""A virtual environment of its own, for tests with packages that the product does not use."""

import subprocess
import sys
import venv
from pathlib import Path

from tests.installs import install_once


def build_environment(folder: Path) -> Path:
    """Create an empty environment, and return its Python."""
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


def get_locked_environment(name: str, lock: Path) -> Path:
    """Return the Python of an environment with the packages of a lock file, which all tests share."""

    def install_packages(folder: Path) -> None:
        install(build_environment(folder / "environment"), "--require-hashes", "-r", str(lock))

    return install_once(name, [lock], install_packages) / "environment" / "bin" / "python"


def install(python: Path, *arguments: str) -> None:
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "pip", "install", "-q", "--python", python, *arguments], check=True, timeout=600)
