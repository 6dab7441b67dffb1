"""Mutation testing: check the golden files for each change to a copy of the sources, print exit codes.

Run as a program with the folder of the copy; standard input lists [file, original text, mutated text].
"""

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OURS = ("prompts", "tests.prompts.assembly.goldens")


@contextmanager
def changed(path: Path, original: str, mutated: str) -> Iterator[None]:
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(original, mutated), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")


def checked() -> int:
    """Return the exit code of the golden check for the sources on disk; import errors count as failures."""
    for name in [name for name in sys.modules if name.startswith(OURS)]:
        del sys.modules[name]
    importlib.invalidate_caches()
    try:
        exit_code: int = importlib.import_module("tests.prompts.assembly.goldens").main([])
    except Exception as error:  # noqa: BLE001  # as a program would end
        print(repr(error))
        return 1
    return exit_code


def main(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    exits = {}
    for file, original, mutated in json.load(sys.stdin):
        with changed(folder / "prompts" / "assembly" / (file or "__init__.py"), original, mutated):
            exits[f"{file}: {mutated}"] = checked()
    loaded = Path(str(importlib.import_module("prompts.assembly").__file__))
    if not loaded.is_relative_to(folder):
        sys.exit(f"These are not the sources of the copy: {loaded}")
    print(json.dumps(exits))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
