"""Architecture checks of unscoped queries, templates and pure modules.

Each check returns its findings as sentences; tests/test_architecture.py requires that there are none.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ("core", "personas", "skills", "prompts", "project")

# --- unscoped queries ----------------------------------------------------------------------------------

# Modules that may query across workspaces, with the reason; migrations are not checked.
MAY_QUERY_UNSCOPED = {
    "personas/tenancy/models.py": "defines the scoped manager",
    "personas/tenancy/middleware.py": "memberships of a user, listed before a workspace is known",
    "personas/members/services.py": "an invitation is looked up by its signed link",
    "personas/accounts/account_adapter.py": "an invitation that a visitor opened before signing up",
    "personas/workspaces/deletion.py": "deleted workspaces of a user, who restores one of them",
    "personas/admin.py": "operators see all workspaces",
    "personas/api_keys/selectors.py": "a key is looked up by its digest and determines the workspace",
    "personas/webhooks/fan_out.py": "the workers find new events and due deliveries of all workspaces",
    "personas/webhooks/stored_secrets.py": "a key rotation encrypts the secrets of all workspaces",
    "personas/webhooks/selectors.py": "old deliveries of all workspaces are deleted together",
    "personas/events/selectors.py": "old events of all workspaces are deleted together",
    "personas/notifications/selectors.py": "the workers find new events and unsent emails of all workspaces",
    "personas/drafts/services.py": "abandoned drafts of all workspaces are deleted together",
    "project/metrics/gauges.py": "metrics of the installation, without names",
    "project/doctor/checks.py": "workspaces near their quota of call data, for the operator",
    "personas/limits/daily_usage.py": "deletes counters of past days",
    "prompts/publishing/builds/queue.py": "the workspaces of one person share turns in the queue",
    "project/metrics/periodic.py": "metrics of the installation, without names",
    "project/backup/samples.py": "a backup contains all workspaces",
    "project/journal/selectors.py": "the journal contains the endings of all workspaces",
    "project/journal/apply.py": "a restore without a journal revokes the keys of all workspaces",
    "personas/api/idempotency.py": "expired responses of all workspaces are deleted together",
    "project/supervisor/prepare_database.py": "checks whether any workspace exists before loading the demo",
    "skills/refresh/runs.py": "the sweep finds lost, due and old refresh runs in all workspaces",
    "skills/files/services.py": "the sweep ends expired waivers of all workspaces",
    "prompts/publishing/builds/sweep.py": "the sweep finds waiting and due agents in all workspaces",
    "skills/refresh/watch.py": "one watcher watches the folders of all sources",
    "prompts/evidence/ledger/blocks.py": "the scheduler closes ledger blocks of all workspaces",
    "prompts/evidence/integrity/lag.py": "the scheduler, the doctor and the metrics compare all workspaces",
    "prompts/evidence/drift/reports.py": "old reports of all workspaces are deleted together",
    "prompts/evidence/integrity/services.py": "old verification runs of all workspaces are deleted together",
    "prompts/evidence/ledger/retention.py": "the scheduler expires ledger rows of all workspaces",
}
UNSCOPED = re.compile(r"\.unscoped\b|\b_base_manager\b|\b_default_manager\b|\.raw\(")


def find_unscoped_queries(root: Path = ROOT) -> list[str]:
    """Find files that query across workspaces and are not listed."""
    names = [name for name, text in sources(root) if UNSCOPED.search(text)]
    return [
        f"{name} queries across workspaces: if it must, give the reason in tests/isolation/architecture.py"
        for name in names
        if name not in MAY_QUERY_UNSCOPED
    ]


def find_unused_permissions(root: Path = ROOT) -> list[str]:
    """Find listed files that no longer query across workspaces."""
    texts = dict(sources(root))
    unused = [name for name in MAY_QUERY_UNSCOPED if not UNSCOPED.search(texts.get(name, ""))]
    return [f"{name} no longer queries across workspaces: remove it from the list" for name in unused]


def sources(root: Path) -> Iterator[tuple[str, str]]:
    for app in APPS:
        for path in sorted((root / app).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


# --- templates -----------------------------------------------------------------------------------------

FORBIDDEN = {
    "marks text as safe": re.compile(r"\|\s*safe(seq)?\b"),
    "switches escaping off": re.compile(r"\{%-?\s*autoescape\s+(?!on\b|true\b)"),
    "holds an inline script": re.compile(
        r"<script(?![^>]*(?:\ssrc=|\stype=\"application/json\"))[^>]*>", re.IGNORECASE
    ),
    "holds an inline style": re.compile(r"<style\b|\sstyle\s*=", re.IGNORECASE),
    "holds an event attribute": re.compile(r"<[a-z][^>]*\son[a-z]+\s*=", re.IGNORECASE),
    "holds a script address": re.compile(r"(?:href|src|action)\s*=\s*[\"']?\s*javascript:", re.IGNORECASE),
}
EXCUSED = {
    # Our text and Django's (the list of password rules is HTML); no help text comes from a tenant.
    ("components/_field_notes.html", "marks text as safe"),
    # Plain text: escaping would put HTML entities into the email.
    ("personas/members/invitation.txt", "switches escaping off"),
    ("personas/notifications/digest.txt", "switches escaping off"),
}
# Emails of accounts, which are plain text too.
EMAIL_FOLDERS = ("account/email/", "mfa/email/")


def find_unsafe_templates(root: Path = ROOT) -> list[str]:
    """Find template code that allows script injection or violates the content security policy."""
    findings = []
    for path in sorted((root / "templates").rglob("*")):
        if path.is_file():
            name, text = path.relative_to(root / "templates").as_posix(), path.read_text(encoding="utf-8")
            if name.startswith(EMAIL_FOLDERS) and name.endswith(".txt"):
                continue
            problems = [problem for problem, pattern in FORBIDDEN.items() if pattern.search(text)]
            findings += [
                f"templates/{name} {problem}" for problem in problems if (name, problem) not in EXCUSED
            ]
    return findings


# Modules that may use mark_safe, and why their HTML is safe.
MARK_SAFE_MODULES = {
    "personas/templatetags/markdown_text.py": "the renderer escapes HTML (test_markdown.py)",
}


def find_mark_safe(root: Path = ROOT) -> list[str]:
    """Find uses of mark_safe, which does not escape; format_html does."""
    return [
        f"{name} uses mark_safe"
        for name, text in sources(root)
        if name not in MARK_SAFE_MODULES and re.search(r"\bmark_safe\b", text)
    ]


# --- pure modules --------------------------------------------------------------------------------------

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

class ImportBlocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ImportError(f"a pure module imports {{name}}")

sys.meta_path.insert(0, ImportBlocker())
for name in {names!r}:
    try:
        importlib.import_module(name)
    except Exception as error:
        print(f"{{name}}: {{type(error).__name__}}: {{error}}")
"""


def list_pure_modules(root: Path = ROOT) -> list[str]:
    """List the modules that must import without any framework; pure packages are searched."""
    paths = sorted(path for package in PURE for path in (root / package.replace(".", "/")).rglob("*.py"))
    names = [".".join(path.relative_to(root).with_suffix("").parts) for path in paths]
    places = {name: root / name.replace(".", "/") for name in CORE}
    there = [name for name, place in places.items() if place.is_dir() or place.with_suffix(".py").exists()]
    return [*(name.removesuffix(".__init__") for name in names), *there]


def find_impure_modules(names: Iterable[str], root: Path = ROOT) -> list[str]:
    """Find pure modules that fail to import while imports of the frameworks are blocked."""
    code = IMPORTER.format(blocked=set(BLOCKED), names=list(names))
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False, timeout=300
    )
    return answer.stdout.splitlines() + ([answer.stderr] if answer.returncode else [])
