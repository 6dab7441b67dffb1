"""The lock files: consistent with pyproject.toml, hashed, and without any host."""

import tomllib

import pytest

from tests.project.deployment.ci_modules import load_ci_module
from tests.project.deployment.production_settings import ROOT

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
checker = load_ci_module("locks")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_no_lock_names_a_host(path):
    assert "://" not in path.read_text()


@pytest.mark.parametrize("name", ["run", "test", "dev"])
def test_each_lock_satisfies_the_project(name):
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    assert [*checker.find_lock_problems(name, text, PROJECT), *checker.find_unhashed_pins(name, text)] == []


@pytest.mark.planted
def test_a_spoilt_lock_is_noticed():
    good = (ROOT / "requirements" / "run.txt").read_text()
    older = good.replace("django==5.2", "django==4.2")
    assert any(
        "django>=5.2" in line or "django<5.3" in line
        for line in checker.find_lock_problems("run", older, PROJECT)
    )
    hosted = good + "\n--index-url https://example.org/simple\n"
    assert any("names a host" in line for line in checker.find_lock_problems("run", hosted, PROJECT))
    assert list(checker.find_unhashed_pins("run", good + "\nextra==1.0\n"))
