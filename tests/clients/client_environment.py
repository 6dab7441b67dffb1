"""A virtual environment of its own, for tests with packages that the product does not use."""

import subprocess
import sys
import venv
from pathlib import Path


def build_environment(folder: Path, lock: Path | None = None) -> Path:
    """Create an environment with the packages of a lock file, and return its Python."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    if lock:
        install(python, "--require-hashes", "-r", str(lock))
    return python


def install(python: Path, *arguments: str) -> None:
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "pip", "install", "-q", "--python", python, *arguments], check=True, timeout=600)
