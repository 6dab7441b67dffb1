"""Lighthouse as a process that audits the pages of a browser; installed from tools/package-lock.json."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.installs import install_once

TOOLS = Path(__file__).parent / "tools"
INSTALL_SECONDS = 300


@dataclass
class Lighthouse:
    """The process; it answers one line for each page."""

    process: "subprocess.Popen[str]"

    def audit(self, page: Page) -> dict[str, Any]:
        """Return the score of the accessibility of an open page, and the audits that failed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{page.url}\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer


def install_lighthouse(folder: Path) -> None:
    """Install the pinned packages, or skip the test with a loud message if that is not possible."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("NOT RUN: Lighthouse needs Node 18.16 or newer and npm")
    shutil.copytree(TOOLS, folder, ignore=shutil.ignore_patterns("node_modules"))
    files = [folder / "package.json", folder / "package-lock.json"]
    (folder / "node_modules").symlink_to(install_once("lighthouse", files, install_packages) / "node_modules")


def install_packages(folder: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(TOOLS / name, folder)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"]
    try:
        result = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip("NOT RUN: Lighthouse could not be installed in time")
    if result.returncode:
        pytest.skip(f"NOT RUN: Lighthouse could not be installed: {result.stderr.strip()[-300:]}")


@contextmanager
def run_lighthouse(folder: Path, port: int) -> Iterator[Lighthouse]:
    """Run Lighthouse on the browser whose debugger listens on this port."""
    process = subprocess.Popen(
        ["node", "lighthouse.mjs", str(port)],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(folder / "errors.log").open("w"),
        text=True,
    )
    try:
        yield Lighthouse(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)
