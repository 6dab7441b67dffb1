"""docs/seeds.md names a test for every rule of a seed."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DOCUMENT = (HERE.parents[1] / "docs" / "seeds.md").read_text(encoding="utf-8")
SEEDS = ("opal", "pi", "moltis", "nova", "ptc")


def list_defined_tests(seed: str) -> set[str]:
    text = (HERE / f"test_{seed}.py").read_text(encoding="utf-8")
    return set(re.findall(r"^def (test_\w+)\(", text, re.MULTILINE))


def read_section(seed: str) -> str:
    """Return the part of the document about a seed, up to the next heading of the same level."""
    [section] = re.findall(rf"^## {seed}\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL)
    return str(section)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_table_of_a_seed_names_only_tests_that_exist(seed):
    assert set(re.findall(r"`(test_\w+)`", read_section(seed))) - list_defined_tests(seed) == set()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_rule_has_a_test(seed):
    table = read_section(seed).partition("### Deviations")[0]
    rows = re.findall(r"^\| (?!Rule of the seed|-)(.+?) \|(.*)\|$", table, re.MULTILINE)
    assert len(rows) >= 30
    # A row in bold is the heading of a part of the seed.
    assert [rule for rule, test in rows if "`test_" not in test and not rule.startswith("**")] == []
