"""SKILL.md is parsed equally with and without libyaml, and fast."""

import time

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from core.text import yaml_events
from skills.skill_format.parser import parse_skill
from tests.example_counts import examples
from tests.skills.skill_format.skill_corpus import CASES, DIFFERENCES, SAMPLES, title_of
from tests.skills.skill_format.test_round_trip import GOOD, SNIPPETS

EVERY = [*CASES, *(case for case, _, _ in DIFFERENCES)]


def slow_reading(source, folder="a-b"):
    """Disable libyaml."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_events, "LIBYAML", None)
        return parse_skill(source, folder_name=folder)


@pytest.mark.parametrize("case", EVERY, ids=title_of)
def test_a_skill_reads_the_same_without_libyaml(case):
    assert parse_skill(case.source, folder_name=case.folder) == slow_reading(case.source, case.folder)


@given(st.sampled_from(GOOD), st.lists(st.tuples(st.floats(0, 1), st.sampled_from(SNIPPETS)), max_size=3))
@settings(max_examples=examples(60, hard=200), deadline=None)
def test_a_damaged_skill_reads_the_same_without_libyaml(source, changes):
    for fraction, snippet in changes:
        # Only the front matter is changed, because the parsers can differ only there.
        offset = int(fraction * source.find(b"\n---", 3))
        source = source[:offset] + snippet + source[offset:]
    assert parse_skill(source, folder_name="a-b") == slow_reading(source)


@pytest.mark.skipif(yaml_events.LIBYAML is None, reason="PyYAML was built without libyaml.")
def test_an_ordinary_skill_takes_a_few_times_as_long_as_its_bare_head():
    source = SAMPLES["pdf-processing"]
    head = source.split(b"---\n", 2)[1]

    def seconds(read):
        began = time.process_time()
        for _ in range(50):
            read()
        return time.process_time() - began

    def times():
        duration = seconds(lambda: parse_skill(source, folder_name="pdf-processing"))
        return duration / seconds(lambda: yaml.load(head, Loader=yaml.CSafeLoader))

    # About twice as long in practice; without libyaml it would be twenty times.
    assert min(times() for _ in range(5)) < 6
