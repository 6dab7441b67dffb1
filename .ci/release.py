"""Build what a release consists of, run by `python3 dev.py release`. Nothing is published.

Written to var/release: wheel and source archive of the Python client, npm package of the TypeScript client,
the release notes from CHANGELOG.md, the SBOM of the image, and SHA256SUMS over all of them.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from sbom import ROOT, ReleaseError, parse_base_image, write_sbom

RELEASE_FOLDER = ROOT / "var" / "release"
PYTHON_CLIENT, TYPESCRIPT_CLIENT = ROOT / "clients" / "python", ROOT / "clients" / "typescript"
UNRELEASED = "Unreleased"


def get_release_version(root: Path = ROOT) -> str:
    """Return the version, which must be the same in the product and both clients."""
    versions = {"pyproject.toml": tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]}
    module = "clients/python/src/dramatis_client/version.py"
    [versions[module]] = re.findall(r'^__version__ = "(.+)"$', (root / module).read_text(), re.MULTILINE)
    package = "clients/typescript/package.json"
    versions[package] = json.loads((root / package).read_text())["version"]
    if len(set(versions.values())) > 1:
        listed = ", ".join(f"{name} has {version}" for name, version in versions.items())
        raise ReleaseError(f"The versions differ: {listed}.")
    return versions["pyproject.toml"]


def extract_release_notes(changelog: str, heading: str) -> str:
    """Return the part of the changelog below a heading, which is a version with or without a date."""
    parts = re.split(r"^## +", changelog, flags=re.MULTILINE)[1:]
    for part in parts:
        title, _, text = part.partition("\n")
        if title.split()[:1] == [heading]:
            if not text.strip():
                raise ReleaseError(f"CHANGELOG.md has nothing below the heading {heading}.")
            return text.strip() + "\n"
    raise ReleaseError(
        f"CHANGELOG.md has no heading for {heading}. Give its unreleased part the heading "
        f"“## {heading}”, or use --trial to build from the unreleased part."
    )


def run_tool(*arguments: str | Path, folder: Path) -> str:
    command = [str(argument) for argument in arguments]
    if shutil.which(command[0]) is None:
        raise ReleaseError(f"{command[0]} is needed for a release and is not installed.")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build_python_client(folder: Path) -> None:
    """Build wheel and source archive from a copy, so that the checkout gets no build folders."""
    source = folder / "python"
    shutil.copytree(
        PYTHON_CLIENT, source, ignore=shutil.ignore_patterns("build", "dist", "*.egg-info", "__pycache__")
    )
    uv = Path(sys.executable).with_name("uv")
    run_tool(uv, "build", "--sdist", "--wheel", "--out-dir", folder, folder=source)
    shutil.rmtree(source)
    (folder / ".gitignore").unlink(missing_ok=True)


def build_typescript_client(folder: Path) -> None:
    source = folder / "typescript"
    shutil.copytree(TYPESCRIPT_CLIENT, source, ignore=shutil.ignore_patterns("node_modules", "dist"))
    run_tool("npm", "ci", "--no-audit", "--no-fund", folder=source)
    run_tool("npm", "run", "build", folder=source)
    run_tool("npm", "pack", "--pack-destination", folder, folder=source)
    shutil.rmtree(source)


def write_checksums(folder: Path) -> None:
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(folder.iterdir())
        if path.name != "SHA256SUMS"
    ]
    (folder / "SHA256SUMS").write_text("".join(lines))


def build_release(base_image: str, folder: Path, *, is_trial: bool = False) -> list[Path]:
    """Build all files of a release in an empty folder, and return them."""
    parse_base_image(base_image)
    version = get_release_version()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    notes = extract_release_notes(changelog, UNRELEASED if is_trial else version)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / f"release-notes-{version}.md").write_text(notes)
    write_sbom(base_image, folder)
    build_python_client(folder)
    build_typescript_client(folder)
    write_checksums(folder)
    return sorted(folder.iterdir())


def main(arguments: list[str]) -> int:
    base_image, *options = arguments
    try:
        paths = build_release(base_image, RELEASE_FOLDER, is_trial="--trial" in options)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    print("Built, not published:")
    for path in paths:
        print(f"  {path.relative_to(ROOT)} ({path.stat().st_size:,} bytes)")
    tag = f"dramatis:{get_release_version()}"
    print(f"Build the image:\n  docker build --build-arg BASE_IMAGE={base_image} --tag {tag} .")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
