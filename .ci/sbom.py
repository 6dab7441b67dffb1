"""Write the SBOM of the image (CycloneDX); .ci/release.py calls it.

It lists the Python packages of the image, from the lock that the Dockerfile installs, with the licences
and dependencies that the installed packages declare. It requires a base image with a digest.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.spdx import is_supported_id
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
# A Python image of Docker Hub or of a mirror, with its tag and digest.
BASE_IMAGE = re.compile(
    r"(?P<name>[a-z0-9][\w.:/-]*?):(?P<tag>(?P<python>3\.\d+)[\w.-]*)@sha256:(?P<digest>[0-9a-f]{64})"
)
NO_DIGEST = """A release needs the digest of its base image, so that the same image can be built again:

  python3 dev.py release --base-image python:3.13-slim-bookworm@sha256:…

docs/releasing.md describes how to find the digest."""


class ReleaseError(Exception):
    """The release cannot be made; the message says why."""


@dataclass(frozen=True)
class BaseImage:
    name: str
    tag: str
    python: str
    digest: str

    @property
    def marker_environment(self) -> dict[str, str]:
        """Return the values of environment markers in the image, whatever machine this is."""
        return {
            "implementation_name": "cpython",
            "os_name": "posix",
            "platform_python_implementation": "CPython",
            "platform_system": "Linux",
            "python_full_version": f"{self.python}.99",
            "python_version": self.python,
            "sys_platform": "linux",
        }


@dataclass(frozen=True)
class Pin:
    """A package of the lock file, with the hashes of all its files that may be installed."""

    requirement: Requirement
    hashes: tuple[str, ...]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        return str(self.requirement.specifier).removeprefix("==")


def parse_base_image(text: str) -> BaseImage:
    match = BASE_IMAGE.fullmatch(text)
    if match is None:
        raise ReleaseError(NO_DIGEST)
    return BaseImage(match["name"], match["tag"], match["python"], match["digest"])


def parse_lock(text: str) -> Iterator[Pin]:
    for block in re.split(r"\n(?=\S)", text.strip()):
        requirement = Requirement(block.partition("\\")[0].strip())
        yield Pin(requirement, tuple(sorted(re.findall(r"--hash=sha256:([0-9a-f]{64})", block))))


def list_removed_packages(dockerfile: str) -> set[str]:
    """Return the packages that the Dockerfile uninstalls, because they are for development."""
    match = re.search(r"uv pip uninstall --python \S+ ([\w -]+)", dockerfile)
    return {canonicalize_name(name) for name in match[1].split()} if match else set()


def list_image_pins(lock: str, dockerfile: str, base: BaseImage) -> list[Pin]:
    removed = list_removed_packages(dockerfile)
    return [
        pin
        for pin in parse_lock(lock)
        if pin.name not in removed
        and (pin.requirement.marker is None or pin.requirement.marker.evaluate({**base.marker_environment}))
    ]


def list_dependencies(requires: list[str], base: BaseImage, extras: frozenset[str]) -> list[Requirement]:
    """Return the requirements of a package that apply in the image with these extras."""
    requirements = [Requirement(line) for line in requires]
    return [
        requirement
        for requirement in requirements
        if requirement.marker is None
        or any(
            requirement.marker.evaluate({**base.marker_environment, "extra": extra})
            for extra in ("", *extras)
        )
    ]


def list_licences(name: str) -> list[License]:
    """Return the declared licence: SPDX expression or id, or else the classifiers or the field `License`."""
    factory, metadata = LicenseFactory(), distribution(name).metadata
    if expression := metadata.get("License-Expression"):
        return [factory.make_with_expression(expression)]
    # Some packages have the whole text in this field.
    field = (metadata.get("License") or "").strip()
    if is_supported_id(field):
        return [factory.make_with_id(field)]
    classifiers = [c for c in metadata.get_all("Classifier") or () if c.startswith("License ::")]
    names = [c.rpartition(" :: ")[2] for c in classifiers] or [field.partition("\n")[0]]
    if not any(names):
        raise ReleaseError(f"{name} declares no licence.")
    return [factory.make_with_name(text) for text in names]


def build_component(pin: Pin) -> Component:
    """Describe a package. The hashes are those of its distribution files; a platform installs one."""
    purl = PackageURL("pypi", name=pin.name, version=pin.version)
    try:
        metadata = distribution(pin.name).metadata
    except PackageNotFoundError:
        raise ReleaseError(f"{pin.name} is not installed, so its licence is unknown.") from None
    if metadata["Version"] != pin.version:
        raise ReleaseError(f"{pin.name} {metadata['Version']} is installed, the lock has {pin.version}.")
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(purl.to_string()),
        comment="hashes of the files of this version that the lock accepts",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in pin.hashes],
    )
    return Component(
        type=ComponentType.LIBRARY,
        name=pin.name,
        version=pin.version,
        bom_ref=purl.to_string(),
        purl=purl,
        description=metadata.get("Summary"),
        licenses=list_licences(pin.name),
        external_references=[files],
    )


def build_base_component(base: BaseImage) -> Component:
    qualifiers = {"tag": base.tag}
    registry, _, name = base.name.rpartition("/")
    if registry:
        qualifiers["repository_url"] = registry
    purl = PackageURL("docker", name=name, version=f"sha256:{base.digest}", qualifiers=qualifiers)
    return Component(
        type=ComponentType.CONTAINER,
        name=base.name,
        version=base.tag,
        bom_ref="base-image",
        purl=purl,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=base.digest)],
    )


def build_sbom(base: BaseImage) -> Bom:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lock = (ROOT / "requirements" / "run.txt").read_text()
    pins = list_image_pins(lock, (ROOT / "Dockerfile").read_text(), base)
    components = {pin.name: build_component(pin) for pin in pins}
    product = Component(
        type=ComponentType.APPLICATION,
        name=project["name"],
        version=project["version"],
        description=project["description"],
        bom_ref=project["name"],
        licenses=[LicenseFactory().make_from_string(project["license"])],
    )
    base_component = build_base_component(base)
    bom = Bom(components=[base_component, *components.values()])
    bom.metadata.component = product
    wanted = {"": frozenset(), **find_extras(project["dependencies"], base)}
    for name, extras in wanted.items():
        requires = (distribution(name).requires or []) if name else project["dependencies"]
        names = {canonicalize_name(found.name) for found in list_dependencies(requires, base, extras)}
        targets = [components[target] for target in sorted(names & set(components))]
        bom.register_dependency(components[name] if name else product, targets)
    bom.register_dependency(product, [base_component])
    return bom


def find_extras(requires: list[str], base: BaseImage) -> dict[str, frozenset[str]]:
    """Return all packages that the product needs in the image, each with its requested extras."""
    extras: dict[str, frozenset[str]] = {}
    waiting = list_dependencies(requires, base, frozenset())
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        known = extras.get(name)
        requested = (known or frozenset()) | requirement.extras
        if requested != known:
            extras[name] = requested
            waiting += list_dependencies(distribution(name).requires or [], base, requested)
    return extras


def render_sbom(bom: Bom) -> str:
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ReleaseError(f"The SBOM does not match the schema of CycloneDX 1.6: {error}")
    return text


def write_sbom(base_image: str, folder: Path) -> Path:
    base = parse_base_image(base_image)
    text = render_sbom(build_sbom(base))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    path = folder / f"{project['name']}-{project['version']}.cdx.json"
    path.write_text(text + "\n")
    return path
