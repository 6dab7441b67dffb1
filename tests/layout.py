"""Checks of the code layout and vocabulary (CONTRIBUTING.md, "Layout and names"); standard library only."""

from __future__ import annotations

import ast
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APPS = ("core", "project", "personas", "skills", "prompts")

# The limit grows with features; it is there so that growth is noticed.
MAX_MODULES = 800
MAX_LOOSE_MODULES = {"project": 17}
MAX_PACKAGE_MODULES = {"prompts/assembly": 34}
DEFAULT_LOOSE_MODULES, DEFAULT_PACKAGE_MODULES = 10, 20
MAX_LINES = 450
MAX_DUPLICATE_FUNCTIONS = 0.04

# Django requires these packages, whatever they hold.
FRAMEWORK_PACKAGES = {"management", "commands", "templatetags", "migrations"}
FRAMEWORK_CLASSES = {"Command", "Migration", "DatabaseWrapper"}
VIEW_NAMES = {"index", "detail", "new", "edit", "export"}

# Modules are nouns. These end in -ing and are nouns all the same.
GERUNDS = {
    "sorting": "the sort order of a list, as in django-tables2",
    "skill_listing": "the listing of skills inside a prompt",
}
# Module names of the old vocabulary.
BANNED_MODULES = {
    *(
        "asking",
        "handing",
        "telling",
        "standing",
        "words",
        "walls",
        "wall",
        "sheets",
        "sheet",
        "shelf",
        "echoes",
    ),
    *(
        "together",
        "keeping",
        "lines",
        "links",
        "stock",
        "houses",
        "house",
        "doors",
        "door",
        "rooms",
        "lookout",
    ),
    *("shapes", "answers", "callers", "refusals", "conditions", "queries_told", "figures", "waiting", "desk"),
}
# Names that may be neither defined nor assigned.
BANNED_NAMES = {"said", "told", "words", "whole", "anew", "moment", "hand_out", "house", "wall", "door"}
BANNED_CLASSES = {
    *(
        "Toll",
        "Shelf",
        "Echo",
        "Sheet",
        "Line",
        "Ticket",
        "Link",
        "Standing",
        "Wanted",
        "Asked",
        "Told",
        "Words",
    ),
    *(
        "Guess",
        "Recall",
        "Recent",
        "Desk",
        "Place",
        "Opened",
        "Prospect",
        "Shown",
        "Reading",
        "Stay",
        "Holding",
    ),
    *("Holdings", "Stock", "Given", "Outlook", "Figures", "Waiting", "Happening", "Drawing", "Pen", "Brush"),
    *(
        "House",
        "Walled",
        "Begun",
        "Lookout",
        "Survey",
        "Trail",
        "Doubt",
        "Absent",
        "Found",
        "Row",
        "Part",
        "Group",
    ),
}
# Names that cannot change, with the reason.
FIXED_NAMES: dict[tuple[str, str], str] = {}
# Phrases of the old vocabulary in comments and docstrings.
BANNED_PHRASES = re.compile(
    r"\b(anew|hand(s|ed)? out|whoever|somebody|second wall|the house|by the gate|bots' door|heed(ed|s)?"
    r"|roll(s|ed)? off)\b",
    re.IGNORECASE,
)


def list_modules(root: Path = ROOT) -> list[Path]:
    """Product modules: no package files, no migrations."""
    paths = (path for app in APPS for path in sorted((root / app).rglob("*.py")))
    return [path for path in paths if path.name != "__init__.py" and "migrations" not in path.parts]


def relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


# --- size ----------------------------------------------------------------------------------------------


def find_too_many_modules(root: Path = ROOT) -> list[str]:
    count = len(list_modules(root))
    return [f"{count} product modules; at most {MAX_MODULES}"] if count > MAX_MODULES else []


def find_crowded_packages(root: Path = ROOT) -> list[str]:
    """Apps with too many loose modules, packages with too many modules or a single one."""
    counts: dict[str, int] = defaultdict(int)
    for path in list_modules(root):
        counts[relative(path.parent, root)] += 1
    problems = []
    for package, count in counts.items():
        if package in APPS:
            most = MAX_LOOSE_MODULES.get(package, DEFAULT_LOOSE_MODULES)
            if count > most:
                problems.append(
                    f"{package} has {count} loose modules; at most {most}: move some into packages"
                )
        elif count > (most := MAX_PACKAGE_MODULES.get(package, DEFAULT_PACKAGE_MODULES)):
            problems.append(f"{package} has {count} modules; at most {most}: it covers two nouns")
        elif (
            count == 1
            and not FRAMEWORK_PACKAGES & set(package.split("/"))
            and not has_subpackages(root / package)
        ):
            problems.append(f"{package} has a single module: merge it with its neighbour")
    return problems


def has_subpackages(folder: Path) -> bool:
    return any(child.is_dir() and (child / "__init__.py").exists() for child in folder.iterdir())


def find_long_modules(root: Path = ROOT) -> list[str]:
    lengths = [(path, path.read_text(encoding="utf-8").count("\n")) for path in list_modules(root)]
    return [
        f"{relative(path, root)} has {lines} lines; at most {MAX_LINES}"
        for path, lines in lengths
        if lines > MAX_LINES
    ]


# --- names ---------------------------------------------------------------------------------------------


def find_bad_module_names(root: Path = ROOT) -> list[str]:
    problems = []
    for path in list_modules(root):
        if path.stem.endswith("ing") and path.stem not in GERUNDS:
            problems.append(f"{relative(path, root)}: a module is a noun, not a gerund")
        if path.stem in BANNED_MODULES:
            problems.append(f"{relative(path, root)}: a name of the old vocabulary")
    return problems


@cache
def parse_module(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def find_banned_names(root: Path = ROOT) -> list[str]:
    """Definitions, parameters, assignments and attributes with a banned name."""
    problems = []
    for path in list_modules(root):
        tree = parse_module(path)
        for line, name in iterate_defined_names(tree):
            if (relative(path, root), name) in FIXED_NAMES:
                continue
            if name in BANNED_NAMES or name in BANNED_CLASSES:
                problems.append(f"{relative(path, root)}:{line}: {name}")
    return problems


def iterate_defined_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.alias(asname=str(name)):
                yield node.lineno, name
            case _:
                pass


def find_duplicate_names(root: Path = ROOT) -> list[str]:
    """Class names that occur twice in an app, and apps in which too many function names do."""
    problems = []
    for app in APPS:
        functions: dict[str, set[str]] = defaultdict(set)
        classes: dict[str, set[str]] = defaultdict(set)
        for path in list_modules(root):
            if path.relative_to(root).parts[0] != app:
                continue
            for node in parse_module(path).body:
                if isinstance(node, ast.ClassDef) and node.name not in FRAMEWORK_CLASSES:
                    classes[node.name].add(relative(path, root))
                elif isinstance(node, ast.FunctionDef) and is_counted(node.name):
                    functions[node.name].add(relative(path, root))
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


# --- comments ------------------------------------------------------------------------------------------


def find_banned_phrases(root: Path = ROOT) -> list[str]:
    return [
        f"{relative(path, root)}:{line}: {match.group(0)}"
        for path in list_modules(root)
        # Most modules have no such text at all, not even outside of comments.
        if BANNED_PHRASES.search(path.read_text(encoding="utf-8"))
        for line, text in iterate_comments(path)
        if (match := BANNED_PHRASES.search(text))
    ]


def iterate_comments(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and docstrings with their lines."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    for node in ast.walk(parse_module(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""


# --- finding things ------------------------------------------------------------------------------------


def find_wrong_places(rows: Iterable[tuple[str, str, str, str]], root: Path = ROOT) -> list[str]:
    """Rows of WHERE_IS whose path does not contain the search term, or does not define the symbol."""
    problems = []
    for question, term, path, symbol in rows:
        if term not in path:
            problems.append(f"{question} {path} does not contain “{term}”")
        elif not (root / path).exists():
            problems.append(f"{question} {path} does not exist")
        elif symbol not in list_symbols(root / path):
            problems.append(f"{question} {path} does not define {symbol}")
    return problems


def list_symbols(path: Path) -> set[str]:
    symbols: set[str] = set()
    for node in parse_module(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            symbols.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            symbols |= {
                name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
            }
    return symbols
