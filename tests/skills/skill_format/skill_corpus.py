"""A corpus of valid and invalid skills with expected flaw and line, also given to the reference validator."""

from dataclasses import dataclass
from pathlib import Path

from skills_ref import validate

SAMPLES = {path.parent.name: path.read_bytes() for path in Path(__file__).parent.glob("samples/*/SKILL.md")}
HEAD = "name: a-b\ndescription: Does a thing.\n"


@dataclass(frozen=True)
class Case:
    title: str
    source: bytes
    flaw: str = ""  # Empty for a valid skill.
    line: int = 0
    folder: str = "a-b"


def title_of(case):
    return case.title if isinstance(case, Case) else None


def reference_accepts(case, folder):
    """Return whether the reference validator accepts the file. An exception counts as a rejection."""
    home = folder / case.folder
    home.mkdir()
    (home / "SKILL.md").write_bytes(case.source)
    try:
        return not validate(home)
    except (UnicodeDecodeError, AttributeError):  # strictyaml raises another error for a control character.
        return False


def skill(title, more="", flaw="", line=4, *, head=HEAD, body="Do it.\n", folder="a-b"):
    """A complete file. By default the flaw is on the first line after name and description."""
    return Case(title, f"---\n{head}{more}---\n\n{body}".encode(), flaw, line if flaw else 0, folder)


def named(title, name, flaw="", *, folder=None):
    head = f"name: {name}\ndescription: Does a thing.\n"
    return skill(title, "", flaw, 2, head=head, folder=name.strip("'\"") if folder is None else folder)


def described(title, description, flaw=""):
    return skill(title, "", flaw, 3, head=f"name: a-b\ndescription: {description}\n")


def raw(title, source, flaw="", line=1):
    return Case(title, source if isinstance(source, bytes) else source.encode(), flaw, line if flaw else 0)


NAMES = [
    named("a plain name", "a-b"),
    named("one letter", "a"),
    named("digits only", "123"),
    named("digits first", "3d-print"),
    named("a word YAML takes for a truth", "no"),
    named("a name that looks like a date", "2024-01-01"),
    named("64 characters", "a" * 64),
    named("a name in quotes", '"a-b"'),
    named("a name with spaces around it", '"  a-b "', folder="a-b"),
    named("kanji", "文書"),
    named("cyrillic", "навык"),
    named("an accent", "café"),
    named("an accent in two characters", "cafe\u0301"),
    named("an accent in two, the folder's in one", "cafe\u0301", folder="caf\u00e9"),
    named("a ligature", "ﬁx", folder="fix"),
    named("upper case", "A-b", "name-shape"),
    named("upper case beyond ASCII", "Навык", "name-shape"),
    named("two hyphens", "a--b", "name-shape"),
    named("a hyphen first", "-ab", "name-shape"),
    named("a hyphen last", "ab-", "name-shape"),
    named("only a hyphen", "'-'", "name-shape"),
    named("an underscore", "a_b", "name-shape"),
    named("a space", "a b", "name-shape"),
    named("a full stop", "a.b", "name-shape"),
    named("a slash", "a/b", "name-shape", folder="a-b"),
    named("an emoji", "🦊", "name-shape"),
    named("a zero-width space", "a\u200bb", "name-shape"),
    named("a vowel sign", "हिंदी", "name-shape"),
    named("65 characters", "a" * 65, "name-length"),
    named("1,000 characters", "a" * 1_000, "name-length", folder="a-b"),
    named("another folder", "a-b", "name-folder", folder="b-a"),
    named("a folder that differs in case", "a-b", "name-folder", folder="A-B"),
    named("an empty name", "", "name-missing", folder="a-b"),
    named("a name of spaces", "'  '", "name-missing", folder="a-b"),
    named("a list for a name", "\n- a-b", "name-missing", folder="a-b"),
    named("keys for a name", "\n  a: b", "name-missing", folder="a-b"),
    skill("no name", "", "name-missing", 1, head="description: Does a thing.\n"),
]

DESCRIPTIONS = [
    described("1,024 characters", "d" * 1_024),
    described("1,024 characters beyond ASCII", "é" * 1_024),
    described("a number", "1.10"),
    described("a description in quotes", "'It''s: fine'"),
    described("folded lines", ">-\n  one\n  two"),
    described("a block of lines", "|\n  one\n\n  two"),
    described("a comment beside", "Does # a thing"),
    described("1,025 characters", "d" * 1_025, "description-length"),
    described("1,024 and the newline of its block", "|\n  " + "d" * 1_024, "description-length"),
    described("an empty description", "", "description-missing"),
    described("an empty description in quotes", "''", "description-missing"),
    described("a description of spaces", "'   '", "description-missing"),
    described("a list for a description", "\n- a\n- b", "description-missing"),
    described("keys for a description", "\n  en: a", "description-missing"),
    skill("no description", "", "description-missing", 1, head="name: a-b\n"),
]

FIELDS = [
    skill(
        "every field",
        "license: MIT\ncompatibility: any\nmetadata:\n  a: b\nallowed-tools: Read Bash(git:*)\n",
    ),
    skill("fields left empty", "license:\ncompatibility: ''\nmetadata:\nallowed-tools:\n"),
    skill("500 characters of compatibility", f"compatibility: {'c' * 500}\n"),
    skill("501 characters of compatibility", f"compatibility: {'c' * 501}\n", "compatibility"),
    skill("a list for compatibility", "compatibility:\n- linux\n", "compatibility"),
    skill("keys for compatibility", "compatibility:\n  os: linux\n", "compatibility"),
    skill("tools as a list of lines", "allowed-tools:\n- Read\n- Bash(git add *)\n"),
    skill("tools in brackets", "allowed-tools: [Read, Grep]\n", "flow-style"),
    skill("metadata with odd values", "metadata:\n  a: no\n  b: 1.10\n  c: 2024-01-01\n  d:\n  1: 2\n"),
    skill("metadata within metadata", "metadata:\n  a:\n    b: c\n  d:\n  - e\n"),
    skill("metadata that is a word", "metadata: hello\n"),
    skill("metadata that is a list", "metadata:\n- a\n- b\n"),
    skill("metadata in braces", "metadata: {a: b}\n", "flow-style"),
    skill("empty metadata in braces", "metadata: {}\n", "flow-style"),
    skill("a list in brackets within metadata", "metadata:\n  a: [1]\n", "flow-style", 5),
    skill("a list for a license", "license:\n- MIT\n"),
    skill("a field of one's own", "version: 1.0.0\n", "unknown-field"),
    skill("a field in upper case", "License: MIT\n", "unknown-field"),
    skill("a field with an underscore", "allowed_tools: Read\n", "unknown-field"),
    skill("globs", "globs:\n- '*.py'\n", "unknown-field"),
    skill("a key that is a number", "1: 2\n", "unknown-field"),
    skill("a key that is nothing", "'': x\n", "unknown-field"),
    skill("a merge key", "<<: x\n", "unknown-field"),
    skill("two problems at once", "version: 1\nName: a\n", "unknown-field"),
    skill("comments and blank lines", "# why\n\n  # indented\nlicense: MIT # beside\n"),
]

SHAPES = [
    skill("no body", body=""),
    skill("a body with rules and front matter of its own", body="---\nname: x\n---\n\n---\n"),
    raw("Windows line ends", f"---\n{HEAD}---\n\nDo it.\n".replace("\n", "\r\n")),
    raw("old Mac line ends", f"---\n{HEAD}---\n\nDo it.\n".replace("\n", "\r")),
    raw("spaces after the fences", f"---  \n{HEAD}---\t\nDo it."),
    raw("nothing after the fence", f"---\n{HEAD}---"),
    raw("an empty file", "", "front-matter"),
    raw("no front matter", "# A skill\n", "front-matter"),
    raw("a blank line first", f"\n---\n{HEAD}---\n", "front-matter"),
    raw("a space first", f" ---\n{HEAD}---\n", "front-matter"),
    raw("front matter never closed", f"---\n{HEAD}", "front-matter"),
    raw("only a fence", "---\n", "front-matter"),
    raw("empty front matter", "---\n---\nDo it.\n", "name-missing"),
    raw("only a comment", "---\n# nothing\n---\n", "name-missing"),
    raw("a list", "---\n- a\n- b\n---\n", "front-matter", 2),
    raw("a word", "---\nhello\n---\n", "front-matter", 2),
    raw("all in braces", "---\n{name: a-b, description: d}\n---\n", "front-matter", 2),
    skill("a key twice", "license: a\nlicense: b\n", "front-matter", 5),
    skill("a key twice within metadata", "metadata:\n  a: b\n  a: c\n", "front-matter", 6),
    skill("an anchor", "license: &a MIT\n", "front-matter"),
    skill("an alias", "license: &a MIT\ncompatibility: *a\n", "front-matter"),
    skill("an alias bomb", "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n", "front-matter"),
    skill("a tag", "license: !!str MIT\n", "front-matter"),
    skill("a Python tag", "license: !!python/object/apply:os.system ['true']\n", "front-matter"),
    skill("a quote left open", "license: 'MIT\n", "front-matter"),
    skill("a colon in plain text", "license: see: here\n", "front-matter"),
    skill("a tab for indentation", "\tlicense: MIT\n", "front-matter"),
    skill("a value that begins with @", "license: @me\n", "front-matter"),
    skill("a bracket left open", "license: [\n", "front-matter", 5),
    skill("a line without a key", "license\n", "front-matter"),
    skill("a control character", "license: a\x01b\n", "front-matter"),
    raw("not UTF-8", b"---\nname: a-b\ndescription: caf\xe9\n---\n", "unreadable", 3),
    raw("UTF-16", f"---\n{HEAD}---\n".encode("utf-16"), "unreadable"),
]

CASES = [*NAMES, *DESCRIPTIONS, *FIELDS, *SHAPES]
SOUND = [case for case in CASES if not case.flaw]

DEEP = "metadata:\n" + "".join(f"{'  ' * level}a:\n" for level in range(1, 22))
# Differences from the reference, with the reason and whether we accept the skill.
DIFFERENCES = [
    (skill("NUL in the body", body="a\x00b\n"), "a database refuses it later, less kindly", False),
    (skill("an escape that stands for NUL", 'license: "\\x00"\n'), "the same, smuggled in", False),
    (skill("a control in the body", body="\x1b[31mred\n"), "a terminal would obey it", False),
    (skill("a control at a line's end", "license: \x85\n"), "YAML breaks the line there", False),
    (skill("a line separator", "license: a\u2028b\n"), "YAML breaks the line there; editors do not", False),
    (skill("a byte order mark inside", "license: a\ufeffb\n"), "YAML skips it without a word", False),
    (skill("an item that begins with a colon", "license:\n- : a\n"), "YAML 1.1 sees an empty key", False),
    (skill("a merge key in a list", "license:\n- <<: a\n"), "nothing is merged: it is kept as written", True),
    (skill("20 KiB of front matter", f"# {'x' * 20_480}\n"), "front matter is bounded", False),
    (skill("300 KiB of body", body="x" * 307_200), "files are bounded", False),
    (skill("21 levels", DEEP), "depth is bounded", False),
    (described("a bare null", "null"), "to YAML that is nothing, not the word null", False),
    (described("a bare tilde", "~"), "the same", False),
    (skill("the end of a document", "...\n"), "what follows would be read by nobody", False),
    (raw("keys pushed in", "---\n  name: a-b\n  description: d\n---\n"), "a key must lift out whole", False),
    (skill("a key with a question mark", "? license\n: MIT\n"), "the same", False),
    (raw("a key beside the fence", f"---{HEAD}---\n"), "a fence is a line of its own", False),
    (raw("a fence within a value", "---\nname: a-b\ndescription: d ---\n"), "the same", False),
    (raw("four hyphens for a fence", f"---\n{HEAD}----\n"), "the same", False),
    (described("three hyphens in quotes", "'a---b'"), "the same, the other way round", True),
    (raw("a tab after the first fence", f"---\t\n{HEAD}---\n"), "nobody sees it", True),
    (raw("a byte order mark", f"\ufeff---\n{HEAD}---\n"), "many editors write one", True),
    (skill("the switch", "disable-model-invocation: true\n"), "two harnesses know the field", True),
]  # fmt: skip
