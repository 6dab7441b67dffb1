"""Licences, secrets and known vulnerabilities: what `dev.py check` and the build server look for."""

import json
import os
import subprocess
import sys
from email.message import Message
from pathlib import Path

import pytest

from tests.project.deployment.ci_modules import load_ci_module
from tests.project.deployment.production_settings import ROOT

licences = load_ci_module("licences")
secret_scan = load_ci_module("secret_scan")
audit = load_ci_module("audit")


def test_all_runtime_dependencies_are_permissively_licensed():
    assert len(licences.list_locked_requirements()) > 50
    assert licences.list_licence_problems() == []


def build_metadata(headers):
    message = Message()
    for header, value in headers.items():
        message[header] = value
    return message


@pytest.mark.planted
@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("patiencediff", {"License-Expression": "GPL-2.0-or-later"}),
        ("other", {"License-Expression": "LGPL-3.0-only"}),
        ("psycopg", {"License-Expression": "GPL-3.0-only"}),
        (
            "other",
            {"License": "", "Classifier": "License :: OSI Approved :: GNU General Public License (GPL)"},
        ),
        ("unknown", {}),
        ("named-wrongly", {"License": "Proprietary\nMIT"}),
    ],
)
def test_other_licences_are_found(name, headers):
    assert licences.find_licence_problem(name, build_metadata(headers))


@pytest.mark.planted
@pytest.mark.parametrize(
    "headers",
    [
        {"License-Expression": "MPL-2.0"},
        {"License": "BSD", "Classifier": "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)"},
        {"License-Expression": "LGPL-3.0-only"},
    ],
)
def test_a_missing_notice_is_found(headers):
    notices = (ROOT / "NOTICE.md").read_text()
    assert licences.find_missing_notice("other", build_metadata(headers), notices)
    assert not licences.find_missing_notice("psycopg", build_metadata(headers), notices)


# --- secrets -------------------------------------------------------------------------------------------


def test_no_file_of_the_repository_contains_a_secret():
    assert secret_scan.scan_files(secret_scan.list_files()) == []
    assert {path for path, _ in secret_scan.KNOWN_SECRETS} <= set(secret_scan.list_files())


@pytest.mark.planted
def test_a_secret_in_a_file_is_found_and_not_printed():
    secret = "ghp_" + "0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX"
    [problem] = secret_scan.find_secrets("docs/x.md", f"first\ntoken = {secret}\n")
    assert problem.startswith("docs/x.md:2: ")
    assert secret not in problem
    known_path, _ = next(iter(secret_scan.KNOWN_SECRETS))
    assert list(secret_scan.find_secrets(known_path, f"token = {secret}"))


# --- known vulnerabilities -----------------------------------------------------------------------------


def run_audit(tmp_path: Path, answer: str | None, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the check with a pip-audit that prints this answer, or without one."""
    if answer is not None:
        program = tmp_path / "pip-audit"
        program.write_text(f"#!{sys.executable}\nimport sys\nprint({answer!r})\nsys.exit(1)\n")
        program.chmod(0o755)
    command = [sys.executable, str(ROOT / ".ci" / "audit.py"), *arguments]
    environment = os.environ | {"PATH": str(tmp_path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("answer", [None, "", "no database", "[]"])
def test_a_check_for_vulnerabilities_that_cannot_run_says_so(tmp_path, answer):
    done = run_audit(tmp_path, answer)
    assert ("NOT RUN" in done.stdout, done.returncode) == (True, 0)
    assert run_audit(tmp_path, answer, "--required").returncode == 1


def test_known_vulnerabilities_fail_the_build(tmp_path):
    packages = [
        {"name": "good", "version": "1", "vulns": []},
        {"name": "bad", "version": "2", "vulns": [{"id": "CVE-1"}, {"id": "CVE-2"}]},
    ]
    done = run_audit(tmp_path, json.dumps({"dependencies": packages}))
    assert ("run: bad 2: CVE-1, CVE-2" in done.stdout, done.returncode) == (True, 1)
    done = run_audit(tmp_path, json.dumps({"dependencies": packages[:1]}))
    assert ("No known vulnerabilities" in done.stdout, done.returncode) == (True, 0)
