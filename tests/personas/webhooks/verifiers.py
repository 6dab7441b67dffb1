"""Verifiers of webhooks by others: openssl, and the libraries standardwebhooks (PyPI, npm) and svix.

The libraries are pinned in libraries/requirements.txt and libraries/package-lock.json. They are no
dependencies of the product or its tests, and are installed once for all runs.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.installs import install_once

LIBRARIES = Path(__file__).parent / "libraries"
PYTHON_SCRIPT = """
import json, sys
from {} import Webhook
data = json.load(sys.stdin)
try:
    Webhook(data["secret"]).verify(data["body"], data["headers"])
except Exception as error:
    print(type(error).__name__, error)
else:
    print("valid")
"""
NODE_SCRIPT = """
const { Webhook } = require("standardwebhooks");
const { secret, body, headers } = JSON.parse(require("fs").readFileSync(0));
try {
  new Webhook(secret).verify(body, headers);
  console.log("valid");
} catch (error) {
  console.log(error.name, error.message);
}
"""
# Each library rejects with an exception of this name.
REJECTION = "WebhookVerificationError"


class WebhookLibraries:
    """A folder with the installed libraries."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        python = str(folder / "venv" / "bin" / "python")
        self.commands = {
            "standardwebhooks (PyPI)": [python, "-c", PYTHON_SCRIPT.format("standardwebhooks")],
            "standardwebhooks (npm)": ["node", "-e", NODE_SCRIPT],
            "svix (PyPI)": [python, "-c", PYTHON_SCRIPT.format("svix.webhooks")],
        }

    def verify(self, headers: Mapping[str, str], body: str, secret: str) -> dict[str, str]:
        """Return what each library says about a delivery."""
        signed = {name: value for name, value in headers.items() if name.startswith("webhook-")}
        data = json.dumps({"secret": secret, "body": body, "headers": signed})
        return {name: self.run(command, data) for name, command in self.commands.items()}

    def run(self, command: list[str], data: str) -> str:
        result = subprocess.run(
            command, input=data, cwd=self.folder, capture_output=True, text=True, check=False, timeout=120
        )
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()


def install_libraries() -> WebhookLibraries:
    """Install the pinned libraries. If no registry responds, the run lists the tests as not run."""
    if not shutil.which("npm") or not shutil.which("node"):
        pytest.skip("NOT RUN: webhooks were not verified with libraries of others; npm is not installed")
    return WebhookLibraries(install_once("webhooks", sorted(LIBRARIES.iterdir()), install_packages))


def install_packages(folder: Path) -> None:
    shutil.copytree(LIBRARIES, folder, dirs_exist_ok=True)
    pip = ["venv/bin/python", "-m", "pip", "install", "-q", "--require-hashes", "-r", "requirements.txt"]
    for command in (
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        [sys.executable, "-m", "venv", "venv"],
        pip,
    ):
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
        # A wrong hash is a failure, not a missing registry.
        assert "EINTEGRITY" not in result.stderr, result.stderr
        assert "DO NOT MATCH THE HASHES" not in result.stderr, result.stderr
        if result.returncode:
            error = (result.stderr.strip().splitlines() or ["no message"])[-1][:200]
            pytest.skip(f"NOT RUN: webhooks were not verified with libraries of others: {error}")


def verify_with_openssl(public_key: bytes, signature: bytes, content: bytes, folder: Path) -> bool:
    key = Ed25519PublicKey.from_public_bytes(public_key)
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for name, data in (("key.pem", pem), ("signature", signature), ("content", content)):
        (folder / name).write_bytes(data)
    command = [
        "openssl",
        "pkeyutl",
        "-verify",
        "-pubin",
        "-inkey",
        "key.pem",
        "-rawin",
        "-in",
        "content",
        "-sigfile",
    ]
    return (
        subprocess.run([*command, "signature"], cwd=folder, capture_output=True, check=False).returncode == 0
    )
