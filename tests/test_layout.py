"""The layout of the code: sizes of files and packages, and names that occur once per app.

`dev.py check` has the rest: ruff, mypy, and the import contracts of import-linter.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
APPS = ("core", "project", "personas", "skills", "prompts")
MAX_LINES = 450
SIZED_FOLDERS = (*APPS, "tests/isolation", "templates", "frontend/css", "frontend/js")
SIZED_SUFFIXES = {".py", ".html", ".css", ".js"}
MAX_LOOSE_MODULES = {"project": 17}
MAX_PACKAGE_MODULES = {"prompts/assembly": 34}
DEFAULT_LOOSE_MODULES, DEFAULT_PACKAGE_MODULES = 10, 20
MAX_DUPLICATE_FUNCTIONS = 0.04

# Django requires these packages, whatever they contain, and these names.
FRAMEWORK_PACKAGES = {"management", "commands", "templatetags", "migrations"}
FRAMEWORK_CLASSES = {"Command", "Migration", "DatabaseWrapper"}
VIEW_NAMES = {"index", "detail", "new", "edit", "export"}


def list_modules(root: Path, *apps: str) -> list[Path]:
    """Modules of these apps: no package files, no migrations."""
    paths = (path for app in apps for path in sorted((root / app).rglob("*.py")))
    return [path for path in paths if path.name != "__init__.py" and "migrations" not in path.parts]


def find_long_files(root: Path) -> list[str]:
    files = [root / "dev.py", *(path for folder in SIZED_FOLDERS for path in (root / folder).rglob("*"))]
    sized = [path for path in files if path.suffix in SIZED_SUFFIXES and "migrations" not in path.parts]
    lengths = {path: path.read_text(encoding="utf-8").count("\n") for path in sized if path.exists()}
    return [
        f"{path.relative_to(root)} has {lines} lines; at most {MAX_LINES}"
        for path, lines in lengths.items()
        if lines > MAX_LINES
    ]


def find_crowded_packages(root: Path) -> list[str]:
    """Apps with too many loose modules, packages with too many modules or a single one."""
    counts = Counter(path.parent.relative_to(root).as_posix() for path in list_modules(root, *APPS))
    problems = []
    for package, count in counts.items():
        if package in APPS:
            most = MAX_LOOSE_MODULES.get(package, DEFAULT_LOOSE_MODULES)
        else:
            most = MAX_PACKAGE_MODULES.get(package, DEFAULT_PACKAGE_MODULES)
        if count > most:
            problems.append(f"{package} has {count} modules; at most {most}")
        elif count == 1 and package not in APPS and is_mergeable(root / package):
            problems.append(f"{package} has a single module: merge it with its neighbour")
    return problems


def is_mergeable(package: Path) -> bool:
    """Return whether a package has no subpackages and is not there because of Django."""
    has_subpackages = any((child / "__init__.py").exists() for child in package.iterdir())
    return not has_subpackages and not FRAMEWORK_PACKAGES & set(package.parts)


def find_duplicate_names(root: Path) -> list[str]:
    """Class names that occur twice in an app, and apps in which too many function names do."""
    problems = []
    for app in APPS:
        functions: dict[str, set[str]] = defaultdict(set)
        classes: dict[str, set[str]] = defaultdict(set)
        for path in list_modules(root, app):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and node.name not in FRAMEWORK_CLASSES:
                    classes[node.name].add(str(path.relative_to(root)))
                elif isinstance(node, ast.FunctionDef) and is_counted(node.name):
                    functions[node.name].add(str(path.relative_to(root)))
        problems += [
            f"class {name} is defined in {' and '.join(sorted(places))}"
            for name, places in sorted(classes.items())
            if len(places) > 1
        ]
        repeated = [name for name, places in functions.items() if len(places) > 1]
        if len(repeated) > MAX_DUPLICATE_FUNCTIONS * len(functions):
            problems.append(
                f"{app}: {len(repeated)} of {len(functions)} function names repeat: {sorted(repeated)}"
            )
    return problems


def is_counted(name: str) -> bool:
    return not name.startswith("_") and name not in VIEW_NAMES


CHECKS: dict[str, Callable[[Path], list[str]]] = {
    check.__name__: check for check in (find_long_files, find_crowded_packages, find_duplicate_names)
}


@pytest.mark.parametrize("name", CHECKS)
def test_the_product_follows_the_layout(name: str) -> None:
    problems = CHECKS[name](ROOT)
    assert not problems, "\n".join(problems[:50])


# --- planted faults ------------------------------------------------------------------------------------

MODULE = '"""A module."""\n'


def make_tree(root: Path, files: dict[str, str]) -> None:
    for name, text in {"core/db/a.py": MODULE, "core/db/b.py": MODULE, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text, encoding="utf-8")


def repeat(folder: str, count: int) -> dict[str, str]:
    return {f"{folder}/module_{number}.py": MODULE for number in range(count)}


FAULTS: dict[str, tuple[str, dict[str, str]]] = {
    "too many loose modules": ("find_crowded_packages", repeat("personas", DEFAULT_LOOSE_MODULES + 1)),
    "a crowded package": ("find_crowded_packages", repeat("skills/files", DEFAULT_PACKAGE_MODULES + 1)),
    "a package with one module": ("find_crowded_packages", {"skills/files/models.py": MODULE}),
    "a long module": ("find_long_files", {"core/db/c.py": MODULE + "A = 1\n" * MAX_LINES}),
    "a long style sheet": ("find_long_files", {"frontend/css/a.css": "p {}\n" * (MAX_LINES + 1)}),
    "a repeated class": (
        "find_duplicate_names",
        {"core/db/c.py": "class Filter:\n    pass\n", "core/db/d.py": "class Filter:\n    pass\n"},
    ),
    "repeated functions": (
        "find_duplicate_names",
        {"core/db/c.py": "def get_a():\n    pass\n", "core/db/d.py": "def get_a():\n    pass\n"},
    ),
}


@pytest.mark.planted
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(fault: str, tmp_path: Path) -> None:
    check, files = FAULTS[fault]
    make_tree(tmp_path, {})
    assert not CHECKS[check](tmp_path)
    make_tree(tmp_path, files)
    assert CHECKS[check](tmp_path)
