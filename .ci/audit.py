"""Check the locked packages for known vulnerabilities with pip-audit, where its database can be reached.

If pip-audit is missing or its database cannot be reached, this prints NOT RUN and exits with 0: a build
without a network is no vulnerability, but must not look like a passed check. `--required` makes it an error.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("run", "test", "dev", "tracing")
TIMEOUT_SECONDS = 300
NOT_RUN_MESSAGE = """
======================================================================
 Known vulnerabilities: NOT RUN. {reason}

   python3 .ci/audit.py --required

 checks them with pip-audit on a machine that reaches its database.
======================================================================
"""


class AuditUnavailable(Exception):
    """The check could not be run; the message says why."""


def find_command() -> list[str]:
    """Return the command of pip-audit: installed, or downloaded for this run by uvx."""
    for name, arguments in (("pip-audit", []), ("uvx", ["pip-audit"])):
        if path := shutil.which(name):
            return [path, *arguments]
    raise AuditUnavailable("Neither pip-audit nor uvx is installed.")


def list_vulnerabilities(lock: str, command: list[str]) -> list[str]:
    """Return the packages of a lock file with known vulnerabilities. No package is installed."""
    options = ["--requirement", f"requirements/{lock}.txt", "--disable-pip", "--require-hashes"]
    options += ["--format", "json", "--progress-spinner", "off"]
    try:
        result = subprocess.run(
            [*command, *options],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
        packages = json.loads(result.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        raise AuditUnavailable(f"It took more than {TIMEOUT_SECONDS} s.") from None
    except (ValueError, KeyError, TypeError):
        reason = (result.stderr.strip().splitlines() or ["It printed nothing."])[-1]
        raise AuditUnavailable(f"pip-audit failed: {reason[:200]}") from None
    return [
        f"{lock}: {package['name']} {package.get('version', '')}: {', '.join(flaw['id'] for flaw in flaws)}"
        for package in packages
        if (flaws := package.get("vulns"))
    ]


def main(arguments: list[str]) -> int:
    try:
        command = find_command()
        found = [problem for lock in LOCKS for problem in list_vulnerabilities(lock, command)]
    except AuditUnavailable as error:
        print(NOT_RUN_MESSAGE.format(reason=error), flush=True)
        return 1 if "--required" in arguments else 0
    print("\n".join(found) or f"No known vulnerabilities in {', '.join(LOCKS)}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
