"""Guards of the house's shape: who may say `unscoped`, what a template may hold, what the core may import."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ("core", "personas", "skills", "prompts", "project")
LONGEST = 450

# --- past the gate -------------------------------------------------------------------------------------

# Who may look beyond one workspace, and why; migrations name the manager and ask nothing.
MAY_LOOK_BEYOND = {
    "personas/tenancy/models.py": "defines the scoped manager",
    "personas/tenancy/middleware.py": "which workspaces a person may enter, asked before there is one",
    "personas/members/services.py": "an invitation is found by its signed link",
    "personas/admin.py": "operators see all workspaces",
    "personas/api_keys/selectors.py": "a key is found by its digest, and determines the workspace",
    "personas/drafts/services.py": "drafts nobody came back to are dropped for all workspaces at once",
    "project/metrics/gauges.py": "figures of the whole house, without names",
    "project/metrics/periodic.py": "figures of the whole house, without names",
    "project/backup/samples.py": "a backup holds all workspaces",
    "personas/api/idempotency.py": "old answers are dropped for all workspaces at once",
    "project/supervisor/prepare_database.py": "whether there is any workspace yet, to decide on the demo",
    "skills/refresh/runs.py": "the sweep finds lost, due and old refresh runs in all workspaces",
    "skills/files/services.py": "the sweep ends waivers that ran out, wherever they are",
    "prompts/builds/sweep.py": "the sweep finds waiting and due agents wherever they are",
    "skills/refresh/watch.py": "one watcher keeps an eye on the folders of all sources",
    "prompts/ledger/blocks.py": "the clock closes the ledgers of all workspaces, one after the other",
    "prompts/ledger/retention.py": "the clock lets old rows go wherever their time is over",
}
BEYOND = re.compile(r"\.unscoped\b|\b_base_manager\b|\b_default_manager\b|\.raw\(")


def looks_beyond(root: Path = ROOT) -> list[str]:
    """Files that pass by the gate without being known for it."""
    found = [name for name, text in sources(root) if BEYOND.search(text)]
    return [
        f"{name} passes by the tenant gate: if it must, give the reason in tests/isolation/architecture.py"
        for name in found
        if name not in MAY_LOOK_BEYOND
    ]


def idle_permissions(root: Path = ROOT) -> list[str]:
    """Files that may pass by the gate and do not."""
    texts = dict(sources(root))
    unused = [name for name in MAY_LOOK_BEYOND if not BEYOND.search(texts.get(name, ""))]
    return [f"{name} no longer passes by the gate: take it off the list" for name in unused]


def sources(root: Path, *, migrations: bool = False) -> Iterator[tuple[str, str]]:
    for app in APPS:
        for path in sorted((root / app).rglob("*.py")):
            if migrations or "migrations" not in path.parts:
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


# --- modules -------------------------------------------------------------------------------------------


# To read the whole of every module takes a second; where this fits there is no need to.
OPENING = re.compile(r'"""\w[^"\\]*"""\n')


def silent_modules(root: Path = ROOT) -> list[str]:
    """Modules that do not say in their first sentence what they are for."""
    return [
        f"{name} has no docstring"
        for name, text in sources(root)
        if text.strip() and not OPENING.match(text) and not ast.get_docstring(ast.parse(text))
    ]


def long_files(root: Path = ROOT) -> list[str]:
    """Files with a second reason to exist; what the migrations' writer makes is its own business."""
    folders = (*APPS, "tests/isolation", "templates", "frontend/css", "frontend/js")
    files = [root / "dev.py", *(path for folder in folders for path in sorted((root / folder).rglob("*")))]
    kinds = {".py", ".html", ".css", ".js"}
    found = [(path, path.read_text(encoding="utf-8").count("\n")) for path in files if path.suffix in kinds]
    return [
        f"{path.relative_to(root)} has {lines} lines; at most {LONGEST} fit"
        for path, lines in found
        if lines > LONGEST and "migrations" not in path.parts
    ]


# --- templates -----------------------------------------------------------------------------------------

FORBIDDEN = {
    "marks text as safe": re.compile(r"\|\s*safe(seq)?\b"),
    "switches escaping off": re.compile(r"\{%-?\s*autoescape\s+off"),
    "holds an inline script": re.compile(
        r"<script(?![^>]*(?:\ssrc=|\stype=\"application/json\"))[^>]*>", re.IGNORECASE
    ),
    "holds an inline style": re.compile(r"<style\b|\sstyle\s*=", re.IGNORECASE),
    "holds an event attribute": re.compile(r"<[a-z][^>]*\son[a-z]+\s*=", re.IGNORECASE),
    "holds a script address": re.compile(r"(?:href|src|action)\s*=\s*[\"']?\s*javascript:", re.IGNORECASE),
}
EXCUSED = {
    # Ours and Django's own words (the list of password rules is HTML); no tenant's text is a help text.
    ("components/_field_notes.html", "marks text as safe"),
    # Plain text: escaping would put entities into a letter.
    ("personas/members/invitation.txt", "switches escaping off"),
}


def careless_templates(root: Path = ROOT) -> list[str]:
    """What could let a tenant's text act, or what the content policy would refuse."""
    findings = []
    for path in sorted((root / "templates").rglob("*")):
        if path.is_file():
            name, text = path.relative_to(root / "templates").as_posix(), path.read_text(encoding="utf-8")
            said = [what for what, shape in FORBIDDEN.items() if shape.search(text)]
            findings += [f"templates/{name} {what}" for what in said if (name, what) not in EXCUSED]
    return findings


def careless_code(root: Path = ROOT) -> list[str]:
    """Python that vouches for a text it has not escaped; format_html escapes, mark_safe does not."""
    return [f"{name} uses mark_safe" for name, text in sources(root) if re.search(r"\bmark_safe\b", text)]


# --- the pure core -------------------------------------------------------------------------------------

CORE = (
    "skills.skill_format.parser",
    "skills.skill_format.tolerance",
    "skills.scanning",
    "skills.discovery",
    "skills.archives",
    "skills.discovery.harness_json",
    "core.text.front_matter",
    "personas.persona_files.format",
)
PURE = ("prompts.assembly", "prompts.proof")
BLOCKED = ("django", "rest_framework", "celery", "redis", "allauth", "structlog")
IMPORTER = """
import importlib, sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ImportError(f"the core reached for {{name}}")

sys.meta_path.insert(0, Wall())
for name in {names!r}:
    try:
        importlib.import_module(name)
    except Exception as error:
        print(f"{{name}}: {{type(error).__name__}}: {{error}}")
"""


def core_modules(root: Path = ROOT) -> list[str]:
    """The modules that must work without any framework; those of pure packages are found by themselves."""
    paths = sorted(path for package in PURE for path in (root / package.replace(".", "/")).rglob("*.py"))
    names = [".".join(path.relative_to(root).with_suffix("").parts) for path in paths]
    places = {name: root / name.replace(".", "/") for name in CORE}
    there = [name for name, place in places.items() if place.is_dir() or place.with_suffix(".py").exists()]
    return [*(name.removesuffix(".__init__") for name in names), *there]


def impure_modules(names: Iterable[str], root: Path = ROOT) -> list[str]:
    """Core modules that cannot be imported while the frameworks are walled off."""
    code = IMPORTER.format(blocked=set(BLOCKED), names=list(names))
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False, timeout=60
    )
    return answer.stdout.splitlines() + ([answer.stderr] if answer.returncode else [])
