"""dev.py release: packages of both clients, release notes and checksums, from one version."""

import hashlib
import json
import tarfile
import zipfile

import pytest

import dev
from tests.project.deployment.ci_modules import load_ci_module
from tests.project.deployment.production_settings import ROOT
from tests.project.deployment.test_dev import run_dev
from tests.project.deployment.test_sbom import PINNED, PROJECT

load_ci_module("sbom")
release = load_ci_module("release")
CHANGELOG = """# Changelog

## Unreleased

- Next.

## 0.2.0 (2026-12-01)

- **Security:** second.

### API

- `items`.

## 0.1.0

- First.
"""


def test_release_notes_are_the_part_of_the_version():
    notes = release.extract_release_notes(CHANGELOG, "0.2.0")
    assert notes == "- **Security:** second.\n\n### API\n\n- `items`.\n"
    assert release.extract_release_notes(CHANGELOG, "0.1.0") == "- First.\n"
    assert release.extract_release_notes(CHANGELOG, "Unreleased") == "- Next.\n"


@pytest.mark.parametrize(
    ("changelog", "message"),
    [(CHANGELOG, "no heading for 0.2"), ("## 0.2\n\n## 0.1\n\n- First.\n", "nothing below the heading 0.2")],
)
def test_a_version_without_notes_is_refused(changelog, message):
    with pytest.raises(release.ReleaseError, match=message):
        release.extract_release_notes(changelog, "0.2")


def test_product_and_clients_have_one_version():
    assert release.get_release_version() == PROJECT["version"]


@pytest.mark.planted
@pytest.mark.parametrize(
    "name",
    ["pyproject.toml", "clients/python/src/dramatis_client/version.py", "clients/typescript/package.json"],
)
def test_different_versions_are_refused(tmp_path, name):
    for folder in ("clients/python/src/dramatis_client", "clients/typescript"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.0"\n')
    (tmp_path / "clients/python/src/dramatis_client/version.py").write_text('__version__ = "1.0"\n')
    (tmp_path / "clients/typescript/package.json").write_text('{"version": "1.0"}')
    assert release.get_release_version(tmp_path) == "1.0"
    changed = (tmp_path / name).read_text().replace("1.0", "1.1")
    (tmp_path / name).write_text(changed)
    with pytest.raises(release.ReleaseError, match="versions differ"):
        release.get_release_version(tmp_path)


def test_the_command_refuses_without_a_digest_and_takes_the_variable(monkeypatch):
    done = run_dev("release", BASE_IMAGE="")
    assert done.returncode == 1
    assert "A release needs the digest of its base image" in done.stderr
    monkeypatch.setenv("BASE_IMAGE", PINNED)
    assert dev.parse_arguments(["release"])[0].base_image == PINNED


@pytest.mark.hard
def test_a_release_has_packages_notes_sbom_and_checksums(tmp_path):
    folder = tmp_path / "release"
    paths = {path.name: path for path in release.build_release(PINNED, folder, is_trial=True)}
    version = PROJECT["version"]
    assert sorted(paths) == sorted(
        [
            "SHA256SUMS",
            f"dramatis-{version}.cdx.json",
            f"dramatis-client-{version}.tgz",
            f"dramatis_client-{version}-py3-none-any.whl",
            f"dramatis_client-{version}.tar.gz",
            f"release-notes-{version}.md",
        ]
    )
    lines = dict(reversed(line.split()) for line in paths["SHA256SUMS"].read_text().splitlines())
    assert set(lines) == set(paths) - {"SHA256SUMS"}
    for name, digest in lines.items():
        assert hashlib.sha256(paths[name].read_bytes()).hexdigest() == digest
    wheel = zipfile.ZipFile(paths[f"dramatis_client-{version}-py3-none-any.whl"])
    assert "dramatis_client/py.typed" in wheel.namelist()
    with tarfile.open(paths[f"dramatis_client-{version}.tar.gz"]) as archive:
        names = archive.getnames()
    assert f"dramatis_client-{version}/pyproject.toml" in names
    with tarfile.open(paths[f"dramatis-client-{version}.tgz"]) as archive:
        member = archive.extractfile("package/package.json")
        assert member is not None
        package = json.load(member)
        names = archive.getnames()
    assert (package["name"], package["version"]) == ("@dramatis/client", version)
    assert "package/dist/index.js" in names
    assert not any("node_modules" in name or "/test" in name for name in names)
    # A release leaves no build folders in the checkout.
    assert not (ROOT / "clients" / "python" / "build").exists()
