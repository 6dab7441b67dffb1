"""Token counts equal those of bpe_openai, without importing the whole package."""

import subprocess
import sys
from pathlib import Path

import pytest

from prompts.publishing.builds import tokens
from prompts.publishing.builds.tokens import (
    COUNTS,
    ENTRY_SIZE,
    MAX_CACHED_TOKENS,
    count_tokens,
    count_tokens_cached,
)

ROOT = Path(__file__).resolve().parents[4]
# As `bpe_openai.get_encoding("o200k_base").encode_ordinary` counts them.
COUNTED = {
    "": 0,
    "Be brave.": 3,
    "漢字とかな": 4,
    "half a pair: \ud800": 5,
    "<|endoftext|>": 7,
    " " * 50: 1,
    "x" * 1_000: 125,
}


@pytest.mark.parametrize("text", COUNTED, ids=ascii)
def test_a_text_has_as_many_tokens_as_its_vocabulary_says(text):
    assert count_tokens(text) == COUNTED[text]


def test_counting_loads_only_the_extension_module():
    """Importing the package loads three vocabularies: a second, and more memory than the application."""
    load = "import sys, prompts.publishing.builds.tokens as t; t.count_tokens('a')"
    code = f"{load}; sys.exit('bpe_openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=300).returncode == 0


@pytest.fixture
def counts():
    COUNTS.clear()
    yield COUNTS
    COUNTS.clear()


def test_a_text_is_counted_once(counts, monkeypatch):
    assert count_tokens_cached("Be brave.") == 3
    monkeypatch.setattr(tokens, "count_tokens", lambda text: pytest.fail("It was counted again."))
    assert count_tokens_cached("Be brave.") == 3


def test_long_texts_do_not_fill_the_memory(counts):
    """A limit on the number of texts would keep all of these."""
    for number in range(40):
        count_tokens_cached(f"{number} " + "word " * 50_000)
    kept = sum(len(text) for text in counts)
    assert counts.currsize <= MAX_CACHED_TOKENS
    assert 4_000_000 < kept < 6_000_000


def test_short_texts_do_not_fill_the_memory_either(counts):
    for number in range(MAX_CACHED_TOKENS // ENTRY_SIZE + 100):
        counts.store(f"text {number}", 1)
    assert len(counts) < MAX_CACHED_TOKENS // ENTRY_SIZE


def test_a_text_that_is_larger_than_the_cache_is_counted(counts, monkeypatch):
    monkeypatch.setattr(tokens, "MAX_CACHED_TOKENS", ENTRY_SIZE)
    assert count_tokens_cached("Be brave.") == 3
    assert not counts
