"""Generate a source folder of 10,000 files, 300 skills and 20 levels."""

import hashlib
from pathlib import Path

FILES, SKILLS, CONTEXT, DEPTH, FOLDERS = 10_000, 300, 1_000, 20, 700
HEAD = "---\nname: {name}\ndescription: {description}\nlicense: MIT\nmetadata:\n  owner: desk\n---\n\n"
SENTENCE = "Ask for the order number before you look anything up, and repeat it in the answer."
# About a kilobyte of ordinary Markdown, with an address and brackets, which take the scanner longer.
BODY = f"""## Orders

{SENTENCE} A parcel that was sent is followed up with the carrier; one that never left the
house is packed again the same day. Say which of the two it is, and when the answer will come.

- **Lost**: open a claim, then write to the customer. Never promise a date that the carrier has not named.
- **Damaged**: ask for two pictures, one of the box and one of what was in it.
- **Returned**: see [the handbook](https://handbook.example/orders), which knows the exceptions.

```sh
orders find --number <number>   # the newest first
orders note --number <number> "asked the carrier"
```

When nothing fits, hand over to a person. Write down what was tried, what the customer wants, and what you
would do next; leave out names, addresses and payment details. One paragraph is enough. People read many of
these in an hour, and the last line is the one they remember, so put the question there.

"""


def make_source(root: Path) -> None:
    """Create many folders of a dozen files each, as in a repository; one branch reaches the deepest level."""
    folders = [
        root / f"team{number % 10}" / f"service{number % 70}" / f"part{number}" for number in range(FOLDERS)
    ]
    folders += [root.joinpath("deep", *map(str, range(1, level))) for level in range(1, DEPTH + 1)]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    for number in range(SKILLS):
        write_file(folders[number * 2] / ".agents" / "skills" / f"skill-{number}" / "SKILL.md", number, HEAD)
    for number in range(CONTEXT):
        name = "CLAUDE.md" if number >= len(folders) else "AGENTS.md"
        write_file(folders[number % len(folders)] / name, number)
    for number in range(FILES - SKILLS - CONTEXT):
        (folders[number % len(folders)] / f"module_{number}.py").write_text("pass\n", encoding="utf-8")


def write_file(path: Path, number: int, head: str = "# Rules\n\n") -> None:
    """Write a file of 1 to 8 KB; all files differ."""
    size = 1 + int(hashlib.sha256(str(number).encode()).hexdigest(), 16) % 8
    text = head.format(name=path.parent.name, description=SENTENCE) + f"{number}\n" + BODY * size
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
