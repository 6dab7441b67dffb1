"""Check that no file of the repository contains a secret, with the rules that scan the files of tenants.

Tests need some made-up secrets. They are listed here with the SHA-256 of their line, so a changed line is
reported again.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Path, and the beginning of the SHA-256 of the line.
KNOWN_SECRETS = {
    ("tests/project/settings/test_env_files.py", "0c98a9bff820c3fc"),
    ("tests/skills/scanning/test_scanning.py", "393def44b8277857"),
    ("tests/project/logging/test_log.py", "ec46c0788e9f8642"),
}
sys.path.insert(0, str(ROOT))

from skills.scanning.rules import SECRET_RULES  # noqa: E402
from skills.scanning.scanner import scan_text  # noqa: E402


def list_files() -> list[str]:
    """List the files that are tracked, and new ones that are not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    return sorted({name for name in output.decode().split("\0") if name})


def find_secrets(path: str, text: str) -> Iterator[str]:
    """Yield a message for each secret that is not known. The excerpt in it is masked."""
    lines = text.splitlines()
    for finding in scan_text(text, rules=SECRET_RULES):
        line = lines[finding.line - 1] if finding.line <= len(lines) else ""
        digest = sha256(line.strip().encode()).hexdigest()[:16]
        if (path, digest) not in KNOWN_SECRETS:
            yield f"{path}:{finding.line}: {finding.message} ({finding.excerpt}) [line {digest}]"


def scan_files(paths: Iterable[str]) -> list[str]:
    problems: list[str] = []
    for path in paths:
        # Pictures and fonts are no UTF-8; a link may lead nowhere.
        with contextlib.suppress(UnicodeDecodeError, OSError):
            problems += find_secrets(path, (ROOT / path).read_text(encoding="utf-8"))
    return problems


if __name__ == "__main__":
    found = scan_files(list_files())
    print("\n".join(found))
    sys.exit(1 if found else 0)
