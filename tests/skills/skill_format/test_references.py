"""Paths of further files that the instructions of a skill refer to."""

import pytest

from skills.skill_format.references import list_referenced_paths


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ("", []),
        ("[a](references/a.md) and [again](references/a.md#part)", ["references/a.md"]),
        ("![chart](assets/chart.png 'The chart')", ["assets/chart.png"]),
        ("[a](./a.md) <scripts/run.sh> `python scripts/run.sh --all`", ["a.md", "scripts/run.sh"]),
        ("[ref]: references/b.md", ["references/b.md"]),
        ("[spaced](<references/my file.md>)", ["references/my file.md"]),
        ("Look into references/c.md.", ["references/c.md"]),
        ("[web](https://tea.example/x.md) [mail](mailto:a@b.example) [part](#part) [root](/etc/passwd)", []),
        ("[up](../other/SKILL.md) [self](SKILL.md) [twice](a/../../b.md)", []),
        ("and/or scripts/ references and /tmp/scripts/x.py", []),
    ],
)
def test_relative_files_are_listed_once_in_order(body, paths):
    assert list_referenced_paths(body) == paths
