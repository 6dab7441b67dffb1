"""The committed files under `static/` are what the front-end sources build, byte for byte."""

import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.installs import install_once
from tests.project.deployment.production_settings import ROOT

# What the build reads.
SOURCES = ("frontend", "templates", "personas/templatetags", "skills/templatetags", "prompts/templatetags")

pytestmark = pytest.mark.hard


def read_tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Return a copy of the sources with the locked packages installed."""
    if shutil.which("npm") is None:
        pytest.skip("Node is not installed: static/ is not compared with a fresh build")
    copy = tmp_path_factory.mktemp("checkout")
    for name in SOURCES:
        shutil.copytree(
            ROOT / name, copy / name, ignore=shutil.ignore_patterns("node_modules", "__pycache__")
        )
    files = [ROOT / "frontend" / name for name in ("package.json", "package-lock.json")]
    packages = install_once("frontend", files, partial(install_packages, files))
    (copy / "frontend" / "node_modules").symlink_to(packages / "node_modules")
    return copy


def install_packages(files: list[Path], folder: Path) -> None:
    for file in files:
        shutil.copy(file, folder)
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, check=True, timeout=300)


def build_static(checkout: Path) -> dict[str, bytes]:
    subprocess.run(["npm", "run", "build"], cwd=checkout / "frontend", check=True, timeout=300)
    return read_tree(checkout / "static")


def test_static_files_are_a_fresh_build(checkout):
    built, committed = build_static(checkout), read_tree(ROOT / "static")
    assert sorted(built) == sorted(committed)
    assert [name for name in built if built[name] != committed[name]] == []


@pytest.mark.planted
def test_an_edited_script_is_found(checkout):
    script = checkout / "frontend" / "js" / "theme.js"
    original = script.read_text()
    script.write_text(original + "\nwindow.planted = 1;\n")
    committed = read_tree(ROOT / "static")
    try:
        built = build_static(checkout)
    finally:
        script.write_text(original)
    assert [name for name in built if built[name] != committed[name]] == ["js/theme.js"]
